// One lock file, one byte of it per thing to be locked.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>

#include "cache/file_system.hpp"
#include "cache/fork_safe_mutex.hpp"

namespace logpjit::cache {

/// Bytes with a fixed purpose; keys use the offsets of `lock_offset`.
inline constexpr off_t kConfigsLock = 0;
inline constexpr off_t kTrimLock = 1;

/// A byte of the lock file for a key, from its 32-digit hash. Two keys that
/// share one merely wait for each other.
off_t lock_offset(const std::string& key_hash);

/// Open-file-description locks: the system drops them when the holder dies, and
/// they exclude other `LockFile`s of the same process too, but not threads that
/// share one `LockFile`. Safe to share between threads.
class LockFile {
 public:
  /// Opened on first use, created with mode 0600, never removed.
  LockFile(FileSystem& files, std::string path);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  enum class Outcome {
    kHeld,
    kTimedOut,
    /// The file cannot be opened for writing, or its file system has no locks.
    kNoLocks,
  };

  /// Unlocks with its life.
  class Hold {
   public:
    Hold() = default;
    Hold(std::shared_ptr<OpenFile> file, FileSystem& files, off_t offset);
    Hold(Hold&&) noexcept = default;
    Hold& operator=(Hold&&) = delete;
    ~Hold();

   private:
    std::shared_ptr<OpenFile> file_;
    FileSystem* files_ = nullptr;
    off_t offset_ = 0;
  };

  struct Result {
    Outcome outcome = Outcome::kNoLocks;
    Hold hold;
  };

  /// Polls until the byte is free or the time is over; zero tries once.
  Result acquire(off_t offset, std::chrono::duration<double> longest);

  const std::string& path() const { return path_; }

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t generation = 0;
  };

  std::shared_ptr<OpenFile> file();
  /// 0, or the error of the last try.
  int wait_for(int file, off_t offset, std::chrono::duration<double> longest);
  void drop_if_stale();

  FileSystem& files_;
  const std::string path_;
  ForkSafeMutex mutex_;
  std::shared_ptr<OpenFile> file_;
  Identity identity_;
};

}  // namespace logpjit::cache
