// Temporary file, sync, rename.
#include "cache/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <random>

#include "cache/entry_name.hpp"

namespace logpjit::cache {
namespace {

std::string random_name() {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}", kTemporaryPrefix, random(), random());
}

}  // namespace

AtomicFile::AtomicFile(FileSystem& files, std::string directory)
    : files_(files), directory_(std::move(directory)) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  constexpr int kAttempts = 8;
  error_ = -EEXIST;
  for (int i = 0; i < kAttempts && error_ == -EEXIST; ++i) {
    temporary_ = directory_ + "/" + random_name();
    file_ = OpenFile(files, files.open(temporary_, kFlags, 0644));
    error_ = -file_.error();
  }
  published_ = error_ != 0;  // nothing to remove
}

AtomicFile::~AtomicFile() {
  file_.close();
  if (!published_) files_.remove(temporary_);
}

int AtomicFile::write(std::span<const std::byte> bytes) {
  if (error_ == 0) {
    error_ = write_all(files_, file_.number(), bytes.data(), bytes.size());
  }
  return error_;
}

int AtomicFile::publish(const std::string& name) {
  if (error_ == 0) error_ = files_.sync(file_.number());
  const int closed = file_.close();
  if (error_ == 0) error_ = closed;
  if (error_ == 0) error_ = files_.rename(temporary_, directory_ + "/" + name);
  if (error_ == 0) published_ = true;
  return error_;
}

int publish_file(FileSystem& files, const std::string& directory,
                 const std::string& name, std::span<const std::byte> bytes) {
  AtomicFile file(files, directory);
  file.write(bytes);
  return file.publish(name);
}

}  // namespace logpjit::cache
