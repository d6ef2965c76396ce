// Directories that cannot be written, reached or trusted: memory only, with one
// warning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "cache/entry_name.hpp"
#include "cache/image_cache.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/cache/worker_process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::bytes_of;
using logpjit::testing::names_in;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::unprivileged;
using logpjit::testing::unprivileged_user;
using logpjit::testing::WorkerProcess;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

namespace fs = std::filesystem;

/// Everything here is done by a process without root's powers.
class PermissionTest : public ::testing::Test {
 protected:
  PermissionTest() { give(home_.path(), 0755); }

  void give(const fs::path& path, mode_t mode) {
    if (geteuid() == 0) {
      ASSERT_EQ(lchown(path.c_str(), unprivileged_user(), unprivileged_user()),
                0);
    }
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  fs::path make(const std::string& name, mode_t mode) {
    fs::create_directory(home_.path() / name);
    give(home_.path() / name, mode);
    return home_.path() / name;
  }
  /// Works from memory, with one warning that contains `warning`.
  void expect_memory_only(const fs::path& directory,
                          const std::string& warning) {
    SCOPED_TRACE(directory);
    WorkerProcess worker(unprivileged());
    const std::string answer = worker.find(1, directory);
    EXPECT_THAT(answer, ::testing::StartsWith("compiled right | cache: "));
    EXPECT_THAT(answer, HasSubstr(warning));
    EXPECT_EQ(answer.find(" | "), answer.rfind(" | ")) << answer;
  }

  TemporaryDirectory home_;
};

TEST_F(PermissionTest, TheOrdinaryCase) {
  WorkerProcess worker(unprivileged());
  EXPECT_EQ(worker.find(1, home_.path() / "a/b"), "compiled right");
  EXPECT_EQ(worker.find(1, home_.path() / "a/b"), "disk right");
}

TEST_F(PermissionTest, AReadOnlyDirectoryIsReadAndNotWritten) {
  const fs::path directory = make("cache", 0755);
  WorkerProcess worker(unprivileged());
  EXPECT_EQ(worker.find(2, directory), "compiled right");
  ASSERT_EQ(chmod(directory.c_str(), 0555), 0);
  EXPECT_EQ(worker.find(2, directory), "disk right");
  expect_memory_only(directory, "Permission denied");
  ASSERT_EQ(chmod(directory.c_str(), 0755), 0);
}

TEST_F(PermissionTest, AReadOnlyDirectoryWithoutAnything) {
  expect_memory_only(make("cache", 0555), "Permission denied");
}

TEST_F(PermissionTest, ADirectoryThatCannotBeSearched) {
  expect_memory_only(make("cache", 0000), "Permission denied");
}

TEST_F(PermissionTest, AParentThatCannotBeSearched) {
  make("closed", 0000);
  expect_memory_only(home_.path() / "closed/cache", "Permission denied");
}

TEST_F(PermissionTest, AParentThatCannotBeWritten) {
  make("fixed", 0555);
  expect_memory_only(home_.path() / "fixed/cache", "Permission denied");
}

TEST_F(PermissionTest, AFileInItsPlace) {
  std::ofstream(home_.path() / "cache") << "x";
  expect_memory_only(home_.path() / "cache", "not a directory");
  expect_memory_only(home_.path() / "cache/below", "not a directory");
}

TEST_F(PermissionTest, ARelativePath) {
  expect_memory_only("relative/cache", "not an absolute path");
  EXPECT_FALSE(fs::exists("relative"));
}

TEST_F(PermissionTest, ADirectoryOpenToAll) {
  const fs::path directory = make("cache", 0700);
  WorkerProcess(unprivileged()).find(1, directory);
  const auto before = bytes_of(directory / entry_name(sample_key(1)));
  ASSERT_FALSE(before.empty());
  for (mode_t mode : {0777, 0772, 0770}) {
    ASSERT_EQ(chmod(directory.c_str(), mode), 0);
    expect_memory_only(directory, "can be written by");
  }
  EXPECT_EQ(bytes_of(directory / entry_name(sample_key(1))), before);
}

TEST_F(PermissionTest, ADirectoryOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const fs::path directory = make("cache", 0777);
  ASSERT_EQ(chown(directory.c_str(), 54321, 54321), 0);
  ASSERT_EQ(chmod(directory.c_str(), 0755), 0);
  expect_memory_only(directory, "belongs to another user (uid 54321");
  EXPECT_THAT(names_in(directory, ""), IsEmpty());
}

TEST_F(PermissionTest, RootsDirectoryIsNotAUsersCache) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const fs::path directory = make("cache", 0755);
  ASSERT_EQ(chown(directory.c_str(), 0, 0), 0);
  expect_memory_only(directory, "belongs to another user (uid 0");
}

TEST_F(PermissionTest, AnAncestorOpenToAll) {
  const fs::path open = make("open", 0777);
  expect_memory_only(open / "cache", "can be written by every user");
  EXPECT_THAT(names_in(open, ""), IsEmpty());
}

TEST_F(PermissionTest, EntriesThatCannotBeRead) {
  const fs::path directory = make("cache", 0700);
  WorkerProcess worker(unprivileged());
  worker.find(1, directory);
  ASSERT_EQ(chmod((directory / entry_name(sample_key(1))).c_str(), 0), 0);
  EXPECT_THAT(worker.find(1, directory),
              MatchesRegex("compiled right \\| cache: cannot read .*"));
  EXPECT_EQ(worker.find(1, directory), "disk right");
}

TEST_F(PermissionTest, ALockFileThatCannotBeOpened) {
  const fs::path directory = make("cache", 0700);
  std::ofstream(directory / "lock") << "";
  ASSERT_EQ(chmod((directory / "lock").c_str(), 0), 0);
  WorkerProcess worker(unprivileged());
  EXPECT_EQ(worker.find(1, directory), "compiled right");
  EXPECT_EQ(worker.find(1, directory), "disk right");
}

TEST_F(PermissionTest, AReadOnlyMount) {
  const fs::path directory = make("cache", 0700);
  WorkerProcess worker(unprivileged());
  worker.find(2, directory);
  if (mount(directory.c_str(), directory.c_str(), nullptr, MS_BIND, nullptr) !=
          0 ||
      mount(nullptr, directory.c_str(), nullptr,
            MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
    GTEST_SKIP() << "no mount here: only root may";
  }
  EXPECT_EQ(worker.find(2, directory), "disk right");
  expect_memory_only(directory, "Read-only file system");
  umount(directory.c_str());
}

TEST_F(PermissionTest, FilesAreReadableByAllAndWritableByTheOwnerOnly) {
  const fs::path directory = make("cache", 0755);
  const mode_t before = umask(0);
  WorkerProcess(unprivileged()).find(1, directory);
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat((directory / entry_name(sample_key(1))).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
  ASSERT_EQ(stat((directory / "lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace logpjit::cache
