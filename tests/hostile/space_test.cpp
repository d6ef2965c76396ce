// Full disks, file size limits, and an error at every call: the caller gets the
// image, nothing is left under the entry's name, and there is one warning.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "cache/entry_file.hpp"
#include "cache/entry_name.hpp"
#include "cache/image_cache.hpp"
#include "tests/support/cache/fault_file_system.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/cache/worker_process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::bytes_of;
using logpjit::testing::Fault;
using logpjit::testing::FaultFileSystem;
using logpjit::testing::names_in;
using logpjit::testing::Operation;
using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::WarningLog;
using logpjit::testing::WorkerProcess;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace fs = std::filesystem;

class SpaceTest : public ::testing::Test {
 protected:
  fs::path directory() { return home_.path() / "cache"; }
  fs::path entry(int number) {
    return directory() / entry_name(sample_key(number));
  }
  CacheOptions options() {
    CacheOptions options;
    options.directory = directory();
    options.warn = log_.sink();
    options.files = &files_;
    return options;
  }
  Origin find(int number) {
    ImageCache cache(options());
    return find(cache, number);
  }
  static Origin find(ImageCache& cache, int number) {
    const Found found = cache.find_or_compile(
        sample_key(number), [&] { return sample_image(number); });
    EXPECT_EQ(*found.image, sample_image(number));
    return found.origin;
  }
  void expect_nothing_left() {
    EXPECT_THAT(names_in(directory(), ".lpj"), IsEmpty());
    for (const auto& each : fs::directory_iterator(directory())) {
      EXPECT_EQ(each.path().filename(), "lock");
    }
  }

  TemporaryDirectory home_;
  FaultFileSystem files_;
  WarningLog log_;
};

TEST_F(SpaceTest, EveryErrorOfAPublish) {
  find(1);
  fs::remove(entry(1));
  for (Operation operation : {Operation::kOpen, Operation::kWrite,
                              Operation::kSync, Operation::kClose}) {
    for (int error : {ENOSPC, EDQUOT, EIO, EROFS, EACCES, EMFILE}) {
      SCOPED_TRACE(fmt::format("operation {} error {}",
                               static_cast<int>(operation), error));
      files_.clear();
      files_.add(
          {.operation = operation, .path_part = ".tmp-", .error = error});
      const std::size_t before = log_.lines().size();
      EXPECT_EQ(find(1), Origin::kCompiled);
      ASSERT_EQ(log_.lines().size(), before + 1);
      EXPECT_THAT(log_.lines().back(), HasSubstr("cannot write"));
      expect_nothing_left();
    }
  }
}

TEST_F(SpaceTest, AFailedRenameLeavesNothing) {
  for (int error : {EIO, EBUSY, EXDEV, ENOSPC}) {
    files_.clear();
    files_.add(
        {.operation = Operation::kRename, .path_part = ".lpj", .error = error});
    EXPECT_EQ(find(1), Origin::kCompiled);
    expect_nothing_left();
  }
}

TEST_F(SpaceTest, ShortWritesAreContinued) {
  files_.add(
      {.operation = Operation::kWrite, .path_part = ".tmp-", .at_most = 1000});
  EXPECT_EQ(find(1), Origin::kCompiled);
  EXPECT_EQ(find(1), Origin::kDisk);
  EXPECT_GE(files_.calls(Operation::kWrite), 12);
}

TEST_F(SpaceTest, ShortReadsAreContinued) {
  find(1);
  files_.add(
      {.operation = Operation::kRead, .path_part = ".lpj", .at_most = 1000});
  EXPECT_EQ(find(1), Origin::kDisk);
}

TEST_F(SpaceTest, SpaceThatRunsOutMidWay) {
  files_.add({.operation = Operation::kWrite,
              .path_part = ".tmp-",
              .at_most = 5000,
              .times = 1});
  files_.add(
      {.operation = Operation::kWrite, .path_part = ".tmp-", .error = ENOSPC});
  EXPECT_EQ(find(1), Origin::kCompiled);
  expect_nothing_left();
}

TEST_F(SpaceTest, OneWarningHoweverManyWritesFail) {
  files_.add(
      {.operation = Operation::kWrite, .path_part = ".tmp-", .error = ENOSPC});
  ImageCache cache(options());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(find(cache, i), Origin::kCompiled);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(find(cache, i), Origin::kMemory);
  EXPECT_THAT(log_.lines(), SizeIs(1));
}

TEST_F(SpaceTest, EveryErrorOfARead) {
  find(1);
  for (Operation operation :
       {Operation::kOpen, Operation::kRead, Operation::kStatus}) {
    for (int error : {EIO, ESTALE, EBUSY, EACCES, EMFILE, ENOENT}) {
      SCOPED_TRACE(fmt::format("operation {} error {}",
                               static_cast<int>(operation), error));
      files_.clear();
      files_.add({.operation = operation, .path_part = ".lpj", .error = error});
      const std::size_t before = log_.lines().size();
      EXPECT_EQ(find(1), Origin::kCompiled);
      const bool quiet = error == ESTALE || error == ENOENT;
      EXPECT_EQ(log_.lines().size(), before + (quiet ? 0 : 1));
      EXPECT_THAT(names_in(directory(), ".bad"), IsEmpty());
    }
  }
}

TEST_F(SpaceTest, AnEntryThatCannotBeSeenAfterItsPublish) {
  // Network file systems may show a new name late.
  files_.add(
      {.operation = Operation::kOpen, .path_part = ".lpj", .error = ENOENT});
  ImageCache cache(options());
  EXPECT_EQ(find(cache, 1), Origin::kCompiled);
  EXPECT_EQ(find(cache, 1), Origin::kMemory);
  EXPECT_EQ(find(1), Origin::kCompiled);  // another process
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(SpaceTest, WhatWasPublishedIsNotReadBack) {
  find(2);
  const int before = files_.calls(Operation::kRead);
  find(1);
  EXPECT_EQ(files_.calls(Operation::kRead), before);
}

TEST_F(SpaceTest, NoLocksNoWarning) {
  for (int error : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    files_.add({.operation = Operation::kLock, .error = error});
    EXPECT_EQ(find(error), Origin::kCompiled);
    EXPECT_EQ(find(error), Origin::kDisk);
  }
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(SpaceTest, EveryCallFailing) {
  for (int operation = 0; operation <= static_cast<int>(Operation::kUnlock);
       ++operation) {
    files_.add({.operation = static_cast<Operation>(operation), .error = EIO});
  }
  ImageCache cache(options());
  EXPECT_EQ(find(cache, 1), Origin::kCompiled);
  EXPECT_EQ(find(cache, 1), Origin::kMemory);
  cache.reject(sample_key(1), "refused");
  EXPECT_EQ(find(cache, 1), Origin::kCompiled);
}

TEST_F(SpaceTest, TemporariesAreNeverOpenedThroughALinkOrOverAFile) {
  find(1);
  const auto flags = files_.flags_of(".tmp-");
  ASSERT_THAT(flags, SizeIs(1));
  EXPECT_TRUE((flags[0] & O_EXCL) && (flags[0] & O_NOFOLLOW));
}

TEST_F(SpaceTest, TakenTemporaryNamesAreSteppedOver) {
  files_.add({.operation = Operation::kOpen,
              .path_part = ".tmp-",
              .error = EEXIST,
              .times = 3});
  find(1);
  EXPECT_TRUE(fs::exists(entry(1)));
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(SpaceTest, AFileSizeLimitDoesNotKill) {
  WorkerProcess worker({"--file-limit", "5000"});
  EXPECT_THAT(worker.find(1, directory()),
              AllOf(HasSubstr("compiled right | "), HasSubstr("File too "
                                                              "large")));
  EXPECT_THAT(worker.find(2, directory()), HasSubstr("compiled right"));
  const int status = worker.finish();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  expect_nothing_left();
}

TEST_F(SpaceTest, AFullFileSystem) {
  fs::create_directory(directory());
  if (mount("none", directory().c_str(), "tmpfs", MS_NOSUID,
            "size=64k,mode=0700") != 0) {
    GTEST_SKIP() << "no mount here: only root may";
  }
  ImageCache cache(options());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(find(cache, i), Origin::kCompiled);
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("No space left")));
  int stored = 0;
  for (int i = 0; i < 10; ++i) {
    const auto state = read_entry_file(files_, entry(i)).state;
    EXPECT_TRUE(state == FileRead::State::kGood ||
                state == FileRead::State::kAbsent);
    stored += state == FileRead::State::kGood;
  }
  EXPECT_GT(stored, 0);
  EXPECT_THAT(names_in(directory(), ""), SizeIs(stored + 1));
  umount(directory().c_str());
}

}  // namespace
}  // namespace logpjit::cache
