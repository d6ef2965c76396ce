// All that the cache asks of a file system; nothing else in cache/ touches
// files.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace logpjit::cache {

/// Thin over the system calls: each returns what its call returns, or -errno.
/// Interrupted calls are repeated. Safe to share between threads. Tests stand
/// a fault-injecting one in front of the real one.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// A file descriptor; O_CLOEXEC is added.
  virtual int open(const std::string& path, int flags, mode_t mode) = 0;
  virtual int close(int file) = 0;
  /// From `offset`; may read less, 0 at the end.
  virtual ssize_t read(int file, void* to, std::size_t bytes, off_t offset) = 0;
  /// May write less. A write beyond RLIMIT_FSIZE is -EFBIG, without the
  /// SIGXFSZ that would end the process.
  virtual ssize_t write(int file, const void* from, std::size_t bytes) = 0;
  /// Content and size to the disk.
  virtual int sync(int file) = 0;
  virtual int truncate(int file, off_t size) = 0;
  virtual int status(int file, struct stat& result) = 0;

  /// Of the name itself: links are not followed.
  virtual int status(const std::string& path, struct stat& result) = 0;
  virtual int read_link(const std::string& path, std::string& target) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  /// Removes a file, a link, or an empty directory.
  virtual int remove(const std::string& path) = 0;
  virtual int make_directory(const std::string& path, mode_t mode) = 0;
  /// Sets the modification time to now, the access time left alone.
  virtual int touch(const std::string& path) = 0;
  /// Names in a directory without "." and "..", in no order.
  virtual int list(const std::string& path,
                   std::vector<std::string>& names) = 0;

  /// Takes or drops the write lock on one byte for this open file (not for the
  /// process); never waits: -EAGAIN or -EACCES when another holds it.
  virtual int lock(int file, off_t offset) = 0;
  virtual int unlock(int file, off_t offset) = 0;
};

/// Lives as long as the process.
FileSystem& real_file_system();

/// Closes with its life.
class OpenFile {
 public:
  OpenFile() = default;
  OpenFile(FileSystem& files, int file) : files_(&files), file_(file) {}
  OpenFile(OpenFile&& other) noexcept
      : files_(other.files_), file_(other.release()) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    close();
    files_ = other.files_;
    file_ = other.release();
    return *this;
  }
  ~OpenFile() { close(); }

  bool is_open() const { return file_ >= 0; }
  int number() const { return file_; }
  /// The error of the open that made this, 0 when it worked.
  int error() const { return file_ < 0 ? -file_ : 0; }
  /// Gives the number up without closing it.
  int release() {
    const int file = file_;
    file_ = -1;
    return file;
  }
  /// 0 or -errno; some file systems report a failed write only here.
  int close() { return is_open() ? files_->close(release()) : 0; }

 private:
  FileSystem* files_ = nullptr;
  int file_ = -1;
};

/// As many bytes from `offset` as there are, up to `bytes`; or -errno.
ssize_t read_all(FileSystem& files, int file, void* to, std::size_t bytes,
                 off_t offset);

/// 0 or -errno; -ENOSPC when the file takes no more bytes.
int write_all(FileSystem& files, int file, const void* from, std::size_t bytes);

}  // namespace logpjit::cache
