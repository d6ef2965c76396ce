// Which directories are trusted with code.
#include "cache/trusted_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::TemporaryDirectory;
using ::testing::HasSubstr;
using State = TrustedPath::State;

namespace fs = std::filesystem;

class TrustedPathTest : public ::testing::Test {
 protected:
  TrustedPath look(const fs::path& path, Role role = Role::kUser,
                   bool create = false) {
    return trust(real_file_system(), path, role, create);
  }
  fs::path make(const std::string& name, mode_t mode) {
    const fs::path path = home_.path() / name;
    mkdir(path.c_str(), 0700);
    chmod(path.c_str(), mode);
    return path;
  }
  TemporaryDirectory home_;
};

TEST_F(TrustedPathTest, CreatesPrivateDirectories) {
  const fs::path path = home_.path() / "a" / "b" / "c";
  EXPECT_EQ(look(path).state, State::kAbsent);
  EXPECT_FALSE(fs::exists(home_.path() / "a"));
  const TrustedPath made = look(path, Role::kUser, true);
  ASSERT_EQ(made.state, State::kTrusted) << made.refusal;
  EXPECT_EQ(made.path, path);
  struct stat status {};
  for (const fs::path& each : {path, path.parent_path()}) {
    ASSERT_EQ(stat(each.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700u);
  }
}

TEST_F(TrustedPathTest, RefusesRelativePathsAndTheRoot) {
  for (const char* path :
       {"", "no-such-cache", "./no-such-cache", "../no-such", "~/no-such"}) {
    EXPECT_EQ(look(path, Role::kUser, true).state, State::kRefused) << path;
    EXPECT_THAT(look(path).refusal, HasSubstr("absolute"));
  }
  EXPECT_FALSE(fs::exists("no-such-cache"));
  EXPECT_EQ(look("/").state, State::kRefused);
  EXPECT_EQ(look("/usr/..").state, State::kRefused);
}

TEST_F(TrustedPathTest, RefusesWhatOthersMayWrite) {
  for (mode_t mode : {0777, 0770, 0720, 0702, 01777}) {
    const TrustedPath found = look(make("open", mode));
    EXPECT_EQ(found.state, State::kRefused) << mode;
    EXPECT_THAT(found.refusal, HasSubstr("chmod"));
  }
  for (mode_t mode : {0700, 0755, 0711, 0500}) {
    EXPECT_EQ(look(make("open", mode)).state, State::kTrusted) << mode;
  }
}

TEST_F(TrustedPathTest, RefusesAncestorsThatOthersMayWrite) {
  make("open", 0777);
  mkdir((home_.path() / "open/cache").c_str(), 0700);
  const TrustedPath found = look(home_.path() / "open/cache");
  EXPECT_EQ(found.state, State::kRefused);
  EXPECT_THAT(found.refusal, HasSubstr("open can be written by every user"));
  EXPECT_EQ(look(home_.path() / "open/new/cache", Role::kUser, true).state,
            State::kRefused);
  EXPECT_FALSE(fs::exists(home_.path() / "open/new"));
  make("open", 01777);  // sticky, like /tmp
  EXPECT_EQ(look(home_.path() / "open/cache").state, State::kTrusted);
}

TEST_F(TrustedPathTest, RefusesWhatIsNoDirectory) {
  std::ofstream(home_.path() / "file") << "x";
  EXPECT_THAT(look(home_.path() / "file").refusal,
              HasSubstr("not a directory"));
  EXPECT_THAT(look(home_.path() / "file/cache", Role::kUser, true).refusal,
              HasSubstr("not a directory"));
}

TEST_F(TrustedPathTest, FollowsOwnLinks) {
  const fs::path real = make("real", 0700);
  fs::create_directory(real / "cache");
  chmod((real / "cache").c_str(), 0700);
  fs::create_directory_symlink(real, home_.path() / "absolute");
  fs::create_directory_symlink("real", home_.path() / "relative");
  fs::create_directory_symlink("../real/cache", real / "up");
  for (const char* name :
       {"absolute/cache", "relative/cache", "real/./cache", "real/up",
        "relative/../real/cache/", "absolute//cache"}) {
    const TrustedPath found = look(home_.path() / name);
    EXPECT_EQ(found.state, State::kTrusted) << name << found.refusal;
    EXPECT_EQ(found.path, real / "cache") << name;
  }
}

TEST_F(TrustedPathTest, EndsOnLoopsAndDanglingLinks) {
  fs::create_symlink("loop", home_.path() / "loop");
  EXPECT_EQ(look(home_.path() / "loop").state, State::kRefused);
  fs::create_symlink("nowhere", home_.path() / "dangling");
  EXPECT_EQ(look(home_.path() / "dangling").state, State::kAbsent);
}

TEST_F(TrustedPathTest, LinksLeadIntoTheSameChecks) {
  make("open", 0777);
  mkdir((home_.path() / "open/cache").c_str(), 0700);
  fs::create_directory_symlink(home_.path() / "open/cache",
                               home_.path() / "link");
  EXPECT_EQ(look(home_.path() / "link").state, State::kRefused);
}

TEST_F(TrustedPathTest, RefusesOtherOwners) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const fs::path path = make("theirs", 0755);
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  EXPECT_THAT(look(path).refusal, HasSubstr("uid 12345"));
  EXPECT_EQ(look(path, Role::kReadOnly).state, State::kRefused);
}

TEST_F(TrustedPathTest, RefusesLinksPlantedByOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  make("real", 0700);
  make("shared", 01777);
  const fs::path link = home_.path() / "shared/link";
  fs::create_directory_symlink(home_.path() / "real", link);
  EXPECT_EQ(look(link).state, State::kTrusted);
  ASSERT_EQ(lchown(link.c_str(), 12345, 12345), 0);
  EXPECT_THAT(look(link).refusal, HasSubstr("link made by another user"));
}

TEST_F(TrustedPathTest, FilesOfOthersOrOpenOnesAreDistrusted) {
  struct stat file {};
  file.st_uid = geteuid();
  file.st_mode = S_IFREG | 0644;
  EXPECT_EQ(distrust(file), "");
  file.st_mode = S_IFREG | 0664;
  EXPECT_NE(distrust(file), "");
  file.st_mode = S_IFREG | 0646;
  EXPECT_NE(distrust(file), "");
  file.st_mode = S_IFIFO | 0600;
  EXPECT_NE(distrust(file), "");
  file.st_mode = S_IFREG | 0600;
  file.st_uid = 0;
  EXPECT_EQ(distrust(file), "");
  file.st_uid = geteuid() + 1;
  EXPECT_NE(distrust(file), "");
}

}  // namespace
}  // namespace logpjit::cache
