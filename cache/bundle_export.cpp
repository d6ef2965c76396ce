// Writing entries to one file.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "cache/atomic_file.hpp"
#include "cache/bundle.hpp"
#include "cache/bundle_format.hpp"
#include "cache/byte_reader.hpp"
#include "cache/digest.hpp"
#include "cache/entry.hpp"
#include "cache/maintenance.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cache {
namespace {

class BundleWriter {
 public:
  BundleWriter(FileSystem& files, const std::filesystem::path& file)
      : path_(file), out_(files, folder(file)) {}

  void add(std::span<const std::byte> bytes) {
    digest_.add(bytes);
    append(bytes);
  }

  std::uint64_t finish() {
    append(digest_.value());
    check(out_.publish(path_.filename().string()));
    return written_;
  }

 private:
  static std::string folder(const std::filesystem::path& file) {
    const std::string parent = file.parent_path().string();
    return parent.empty() ? "." : parent;
  }

  void append(std::span<const std::byte> bytes) {
    check(out_.write(bytes));
    written_ += bytes.size();
  }

  void check(int error) const {
    if (error == 0) return;
    throw Error(ErrorCode::kIo,
                fmt::format("cannot write {}: {}", path_.string(),
                            std::strerror(-error)));
  }

  const std::filesystem::path path_;
  AtomicFile out_;
  DigestStream digest_;
  std::uint64_t written_ = 0;
};

/// A rename would put a file in the place of a device or folder.
void refuse_special_target(FileSystem& files,
                           const std::filesystem::path& file) {
  struct stat status {};
  const bool exists = files.status(file.string(), status) == 0;
  if (file.filename().empty() || (exists && !S_ISREG(status.st_mode))) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot write {}: it is not a regular file",
                            file.string()));
  }
}

void add_member(BundleWriter& writer, const Listed& member) {
  const auto entry = encode(member.entry.key_text, member.entry.image);
  ByteWriter head;
  head.u32(static_cast<std::uint32_t>(member.name.size()));
  head.u32(0);
  head.u64(entry.size());
  head.text(member.name);
  writer.add(head.written());
  writer.add(entry);
}

}  // namespace

ExportResult export_entries(FileSystem& files,
                            const std::filesystem::path& directory,
                            const std::filesystem::path& file) {
  refuse_special_target(files, file);
  BundleWriter writer(files, file);
  ByteWriter head;
  head.text(kBundleMagic);
  head.u32(kBundleFormat);
  head.u32(0);
  writer.add(head.written());

  ExportResult result;
  each_entry(files, directory, Role::kUser, [&](const Listed& member) {
    add_member(writer, member);
    ++result.entries;
  });

  ByteWriter end;
  end.number(0, 4);
  end.number(0, 4);
  end.u64(0);
  end.u64(result.entries);
  writer.add(end.written());
  result.bytes = writer.finish();
  return result;
}

}  // namespace logpjit::cache
