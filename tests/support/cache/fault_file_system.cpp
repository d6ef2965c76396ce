// Matching calls with faults.
#include "tests/support/cache/fault_file_system.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace logpjit::testing {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

cache::FileSystem& real() { return cache::real_file_system(); }

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

}  // namespace

void FaultFileSystem::add(Fault fault) {
  const std::lock_guard guard(mutex_);
  faults_.push_back(std::move(fault));
}

void FaultFileSystem::clear() {
  const std::lock_guard guard(mutex_);
  faults_.clear();
}

int FaultFileSystem::calls(Operation operation) const {
  const std::lock_guard guard(mutex_);
  const auto found = calls_.find(operation);
  return found == calls_.end() ? 0 : found->second;
}

std::vector<int> FaultFileSystem::flags_of(const std::string& part) const {
  const std::lock_guard guard(mutex_);
  std::vector<int> flags;
  for (const auto& [path, value] : opens_) {
    if (path.find(part) != path.npos) flags.push_back(value);
  }
  return flags;
}

Fault FaultFileSystem::fate(Operation operation, const std::string& path) {
  const std::lock_guard guard(mutex_);
  ++calls_[operation];
  for (Fault& fault : faults_) {
    if (fault.operation != operation || fault.times == 0 ||
        path.find(fault.path_part) == path.npos) {
      continue;
    }
    if (fault.skip > 0) {
      --fault.skip;
      continue;
    }
    --fault.times;
    return fault;
  }
  return {};
}

std::string FaultFileSystem::path_of(int file) const {
  const std::lock_guard guard(mutex_);
  const auto found = paths_.find(file);
  return found == paths_.end() ? "" : found->second;
}

template <class Call>
auto FaultFileSystem::befall(Operation operation, const std::string& path,
                             Call call) -> decltype(call(std::size_t{})) {
  const Fault fault = fate(operation, path);
  if (fault.kill_before) die();
  if (fault.error != 0) return -fault.error;
  const auto result = call(fault.at_most == 0 ? kNoLimit : fault.at_most);
  if (fault.kill_after) die();
  return result;
}

int FaultFileSystem::open(const std::string& path, int flags, mode_t mode) {
  {
    const std::lock_guard guard(mutex_);
    opens_.emplace_back(path, flags);
  }
  return befall(Operation::kOpen, path, [&](std::size_t) {
    const int file = real().open(path, flags, mode);
    const std::lock_guard guard(mutex_);
    if (file >= 0) paths_[file] = path;
    return file;
  });
}

int FaultFileSystem::close(int file) {
  // Closed whatever the fault, as the system does.
  const std::string path = path_of(file);
  const int result = real().close(file);
  return befall(Operation::kClose, path, [&](std::size_t) { return result; });
}

ssize_t FaultFileSystem::read(int file, void* to, std::size_t bytes,
                              off_t offset) {
  return befall(Operation::kRead, path_of(file), [&](std::size_t limit) {
    return real().read(file, to, std::min(bytes, limit), offset);
  });
}

ssize_t FaultFileSystem::write(int file, const void* from, std::size_t bytes) {
  return befall(Operation::kWrite, path_of(file), [&](std::size_t limit) {
    return real().write(file, from, std::min(bytes, limit));
  });
}

int FaultFileSystem::sync(int file) {
  return befall(Operation::kSync, path_of(file),
                [&](std::size_t) { return real().sync(file); });
}

int FaultFileSystem::truncate(int file, off_t size) {
  return befall(Operation::kTruncate, path_of(file),
                [&](std::size_t) { return real().truncate(file, size); });
}

int FaultFileSystem::status(int file, struct stat& result) {
  return befall(Operation::kStatus, path_of(file),
                [&](std::size_t) { return real().status(file, result); });
}

int FaultFileSystem::status(const std::string& path, struct stat& result) {
  return befall(Operation::kStatus, path,
                [&](std::size_t) { return real().status(path, result); });
}

int FaultFileSystem::read_link(const std::string& path, std::string& target) {
  return befall(Operation::kReadLink, path,
                [&](std::size_t) { return real().read_link(path, target); });
}

int FaultFileSystem::rename(const std::string& from, const std::string& to) {
  return befall(Operation::kRename, to,
                [&](std::size_t) { return real().rename(from, to); });
}

int FaultFileSystem::remove(const std::string& path) {
  return befall(Operation::kRemove, path,
                [&](std::size_t) { return real().remove(path); });
}

int FaultFileSystem::make_directory(const std::string& path, mode_t mode) {
  return befall(Operation::kMakeDirectory, path,
                [&](std::size_t) { return real().make_directory(path, mode); });
}

int FaultFileSystem::touch(const std::string& path) {
  return befall(Operation::kTouch, path,
                [&](std::size_t) { return real().touch(path); });
}

int FaultFileSystem::list(const std::string& path,
                          std::vector<std::string>& names) {
  return befall(Operation::kList, path,
                [&](std::size_t) { return real().list(path, names); });
}

int FaultFileSystem::lock(int file, off_t offset) {
  return befall(Operation::kLock, path_of(file),
                [&](std::size_t) { return real().lock(file, offset); });
}

int FaultFileSystem::unlock(int file, off_t offset) {
  return befall(Operation::kUnlock, path_of(file),
                [&](std::size_t) { return real().unlock(file, offset); });
}

}  // namespace logpjit::testing
