// Taking and dropping byte locks of the lock file.
#include "cache/file_lock.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <thread>

namespace logpjit::cache {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kFirstPause{200};
constexpr std::chrono::microseconds kLongestPause{20000};

bool taken_by_another(int error) {
  return error == -EAGAIN || error == -EACCES;
}

}  // namespace

off_t lock_offset(const std::string& key_hash) {
  constexpr std::size_t kDigits = 15;  // 60 bits: positive, and room to add
  constexpr off_t kFirst = 256;
  std::uint64_t number = 0;
  const char* begin = key_hash.data();
  std::from_chars(begin, begin + std::min(kDigits, key_hash.size()), number,
                  16);
  return kFirst + static_cast<off_t>(number);
}

LockFile::Hold::Hold(std::shared_ptr<OpenFile> file, FileSystem& files,
                     off_t offset)
    : file_(std::move(file)), files_(&files), offset_(offset) {}

LockFile::Hold::~Hold() {
  if (file_) files_->unlock(file_->number(), offset_);
}

LockFile::LockFile(FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)) {}

LockFile::~LockFile() = default;

/// Keeps the file open between uses, but not after a fork (the child would
/// share its parent's locks) nor when it has been removed.
void LockFile::drop_if_stale() {
  if (file_ == nullptr) return;
  struct stat status;  // cleared, it would cost as much as a lock's bookkeeping
  const bool same = files_.status(file_->number(), status) == 0 &&
                    status.st_dev == identity_.device &&
                    status.st_ino == identity_.inode;
  // Someone closed all descriptors; the number is not ours to close any more.
  if (!same) file_->release();
  const bool forked = identity_.generation != fork_generation();
  if (!same || forked || status.st_nlink == 0) file_.reset();
}

std::shared_ptr<OpenFile> LockFile::file() {
  const std::lock_guard guard(mutex_);
  drop_if_stale();
  if (file_ != nullptr) return file_;
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
  auto opened = std::make_shared<OpenFile>(
      files_, files_.open(path_, kFlags, S_IRUSR | S_IWUSR));
  struct stat status {};
  if (!opened->is_open() || files_.status(opened->number(), status) != 0 ||
      !S_ISREG(status.st_mode)) {
    return nullptr;
  }
  identity_ = {status.st_dev, status.st_ino, fork_generation()};
  file_ = std::move(opened);
  return file_;
}

LockFile::Result LockFile::acquire(off_t offset,
                                   std::chrono::duration<double> longest) {
  std::shared_ptr<OpenFile> open = file();
  if (open == nullptr) return {};
  // Usually free: nothing else is done then, not even looking at the clock.
  int error = files_.lock(open->number(), offset);
  if (taken_by_another(error)) {
    error = wait_for(open->number(), offset, longest);
  }
  if (error == 0)
    return {Outcome::kHeld, Hold(std::move(open), files_, offset)};
  return {taken_by_another(error) ? Outcome::kTimedOut : Outcome::kNoLocks, {}};
}

int LockFile::wait_for(int file, off_t offset,
                       std::chrono::duration<double> longest) {
  const auto begin = Clock::now();
  auto pause = kFirstPause;
  int error = -EAGAIN;
  while (taken_by_another(error) && Clock::now() - begin < longest) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
    error = files_.lock(file, offset);
  }
  return error;
}

}  // namespace logpjit::cache
