// Byte locks: exclusion, time-out, absence of locks, fork.
#include "cache/file_lock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "cache/lock_holder.hpp"
#include "tests/support/cache/fault_file_system.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::FaultFileSystem;
using logpjit::testing::Operation;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using Outcome = LockFile::Outcome;
using Seconds = std::chrono::duration<double>;

class FileLockTest : public ::testing::Test {
 protected:
  std::string path() { return home_.path() / "lock"; }
  TemporaryDirectory home_;
  FaultFileSystem files_;
};

TEST_F(FileLockTest, ExcludesAnotherOfTheSameByteOnly) {
  LockFile a(files_, path());
  LockFile b(files_, path());
  {
    const auto held = a.acquire(300, Seconds(0));
    EXPECT_EQ(held.outcome, Outcome::kHeld);
    EXPECT_EQ(b.acquire(300, Seconds(0)).outcome, Outcome::kTimedOut);
    EXPECT_EQ(b.acquire(301, Seconds(0)).outcome, Outcome::kHeld);
  }
  EXPECT_EQ(b.acquire(300, Seconds(0)).outcome, Outcome::kHeld);
}

TEST_F(FileLockTest, WaitsAsLongAsAsked) {
  LockFile a(files_, path());
  LockFile b(files_, path());
  const auto held = a.acquire(300, Seconds(0));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(b.acquire(300, Seconds(0.1)).outcome, Outcome::kTimedOut);
  const Seconds waited = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(waited.count(), 0.1);
  EXPECT_LT(waited.count(), 5);
}

TEST_F(FileLockTest, OffsetsOfKeysDifferAndSpareTheReservedOnes) {
  std::set<off_t> offsets;
  for (int i = 0; i < 1000; ++i) {
    const off_t offset = lock_offset(sample_key(i).hash());
    EXPECT_GT(offset, kTrimLock);
    offsets.insert(offset);
  }
  EXPECT_EQ(offsets.size(), 1000u);
  EXPECT_GT(lock_offset(std::string(32, 'f')), 0);
  EXPECT_GT(lock_offset(std::string(32, '0')), kTrimLock);
}

TEST_F(FileLockTest, NoLocksIsNoError) {
  LockFile lock(files_, path());
  for (int error : {ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL, EIO}) {
    files_.clear();
    files_.add({.operation = Operation::kLock, .error = error});
    EXPECT_EQ(lock.acquire(300, Seconds(5)).outcome, Outcome::kNoLocks);
  }
  LockFile nowhere(files_, "/nonexistent/lock");
  EXPECT_EQ(nowhere.acquire(300, Seconds(5)).outcome, Outcome::kNoLocks);
}

TEST_F(FileLockTest, DoesNotFollowALinkNorWaitForAFifo) {
  ASSERT_EQ(symlink("/tmp/logpjit-victim", path().c_str()), 0);
  LockFile linked(files_, path());
  EXPECT_EQ(linked.acquire(300, Seconds(1)).outcome, Outcome::kNoLocks);
  EXPECT_FALSE(std::filesystem::exists("/tmp/logpjit-victim"));
  const std::string fifo = home_.path() / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  LockFile piped(files_, fifo);
  EXPECT_EQ(piped.acquire(300, Seconds(1)).outcome, Outcome::kNoLocks);
}

TEST_F(FileLockTest, NoticesThatItsFileWasRemoved) {
  LockFile a(files_, path());
  const auto old = a.acquire(300, Seconds(0));
  ASSERT_EQ(unlink(path().c_str()), 0);
  LockFile b(files_, path());
  const auto held = b.acquire(300, Seconds(0));
  EXPECT_EQ(a.acquire(300, Seconds(0)).outcome, Outcome::kTimedOut);
}

TEST_F(FileLockTest, NoticesThatItsDescriptorWasTakenAway) {
  LockFile a(files_, path());
  LockFile b(files_, path());
  a.acquire(300, Seconds(0));
  // What a daemon does that closes all it did not open.
  ASSERT_EQ(dup2(STDIN_FILENO, STDERR_FILENO + 1) >= 0, true);
  for (int file = STDERR_FILENO + 1; file < 64; ++file) ::close(file);
  const auto held = a.acquire(300, Seconds(0));
  EXPECT_EQ(held.outcome, Outcome::kHeld);
  EXPECT_EQ(b.acquire(300, Seconds(0)).outcome, Outcome::kTimedOut);
}

TEST_F(FileLockTest, AForkedChildHasLocksOfItsOwn) {
  LockFile lock(files_, path());
  auto held = std::make_unique<LockFile::Result>(lock.acquire(300, {}));
  const pid_t child = fork();
  if (child == 0) {
    const bool excluded =
        lock.acquire(300, Seconds(0)).outcome == Outcome::kTimedOut;
    _exit(excluded ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  LockFile other(files_, path());
  EXPECT_EQ(other.acquire(300, Seconds(0)).outcome, Outcome::kTimedOut);
  held.reset();
  EXPECT_EQ(other.acquire(300, Seconds(0)).outcome, Outcome::kHeld);
}

TEST_F(FileLockTest, NamesTheHolder) {
  LockFile lock(files_, path());
  const auto held = lock.acquire(300, Seconds(0));
  EXPECT_THAT(lock_holder(files_, path(), 300),
              ::testing::HasSubstr(fmt::format("process {} (", getpid())));
  EXPECT_THAT(lock_holder(files_, path(), 301),
              ::testing::HasSubstr("cannot be seen from here"));
}

}  // namespace
}  // namespace logpjit::cache
