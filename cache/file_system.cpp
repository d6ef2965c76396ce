// The real file system, by plain system calls.
#include "cache/file_system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string_view>

namespace logpjit::cache {
namespace {

/// Calls until it is not interrupted; -errno on failure.
template <class Call>
auto attempt(Call call) -> decltype(call()) {
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

/// Keeps SIGXFSZ from this thread while it lives, and takes with it the one
/// that its own write raised. One that was pending before stays pending.
class FileSizeSignalHeld {
 public:
  FileSizeSignalHeld() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  FileSizeSignalHeld(const FileSizeSignalHeld&) = delete;
  FileSizeSignalHeld& operator=(const FileSizeSignalHeld&) = delete;
  ~FileSizeSignalHeld() {
    if (!was_pending_) {
      const timespec at_once{};
      while (sigtimedwait(&signal_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

// A lock is taken and given back for each kernel that a process looks for. On
// 64-bit x86 the kernel is asked directly: glibc's fcntl examines its command,
// and its fstat, up to 2.38, has the kernel look up an empty path.
#if defined(__x86_64__) && defined(__LP64__)
int set_range(int file, const struct flock& range) {
  return static_cast<int>(syscall(SYS_fcntl, file, F_OFD_SETLK, &range));
}
int status_of(int file, struct stat& result) {
  return static_cast<int>(syscall(SYS_fstat, file, &result));
}
#else
int set_range(int file, const struct flock& range) {
  return fcntl(file, F_OFD_SETLK, &range);
}
int status_of(int file, struct stat& result) { return fstat(file, &result); }
#endif

int set_lock(int file, off_t offset, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = offset;
  range.l_len = 1;
  return attempt([&] { return set_range(file, range); });
}

class RealFileSystem final : public FileSystem {
 public:
  int open(const std::string& path, int flags, mode_t mode) override {
    return attempt(
        [&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
  }
  // Not repeated: after EINTR the descriptor is gone already.
  int close(int file) override { return ::close(file) == 0 ? 0 : -errno; }
  ssize_t read(int file, void* to, std::size_t bytes, off_t offset) override {
    return attempt([&] { return ::pread(file, to, bytes, offset); });
  }
  ssize_t write(int file, const void* from, std::size_t bytes) override {
    const FileSizeSignalHeld held;
    return attempt([&] { return ::write(file, from, bytes); });
  }
  int sync(int file) override {
    return attempt([&] { return fdatasync(file); });
  }
  int truncate(int file, off_t size) override {
    return attempt([&] { return ftruncate(file, size); });
  }
  int status(int file, struct stat& result) override {
    return attempt([&] { return status_of(file, result); });
  }
  int status(const std::string& path, struct stat& result) override {
    return attempt([&] { return lstat(path.c_str(), &result); });
  }
  int read_link(const std::string& path, std::string& target) override {
    std::array<char, PATH_MAX> buffer;
    const auto length = attempt(
        [&] { return ::readlink(path.c_str(), buffer.data(), buffer.size()); });
    if (length < 0) return static_cast<int>(length);
    target.assign(buffer.data(), static_cast<std::size_t>(length));
    return 0;
  }
  int rename(const std::string& from, const std::string& to) override {
    return attempt([&] { return std::rename(from.c_str(), to.c_str()); });
  }
  int remove(const std::string& path) override {
    return attempt([&] { return std::remove(path.c_str()); });
  }
  int make_directory(const std::string& path, mode_t mode) override {
    return attempt([&] { return mkdir(path.c_str(), mode); });
  }
  int touch(const std::string& path) override {
    const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
    return attempt([&] {
      return utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
    });
  }
  int list(const std::string& path, std::vector<std::string>& names) override;
  int lock(int file, off_t offset) override {
    return set_lock(file, offset, F_WRLCK);
  }
  int unlock(int file, off_t offset) override {
    return set_lock(file, offset, F_UNLCK);
  }
};

int RealFileSystem::list(const std::string& path,
                         std::vector<std::string>& names) {
  names.clear();
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return -errno;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(directory);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  closedir(directory);
  return -error;
}

}  // namespace

FileSystem& real_file_system() {
  static auto* const files = new RealFileSystem;  // outlives all statics
  return *files;
}

namespace {
/// Lest a fork finds it half made in another thread.
[[maybe_unused]] const FileSystem& made_at_load = real_file_system();
}  // namespace

ssize_t read_all(FileSystem& files, int file, void* to, std::size_t bytes,
                 off_t offset) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        files.read(file, static_cast<char*>(to) + done, bytes - done,
                   offset + static_cast<off_t>(done));
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

int write_all(FileSystem& files, int file, const void* from,
              std::size_t bytes) {
  const char* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t done = files.write(file, next, bytes);
    if (done < 0) return static_cast<int>(done);
    if (done == 0) return -ENOSPC;
    next += done;
    bytes -= static_cast<std::size_t>(done);
  }
  return 0;
}

}  // namespace logpjit::cache
