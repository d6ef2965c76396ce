// Which directory the cache goes to, and what odd environments do to it.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/runtime/options/environment.hpp"

namespace logpjit {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CacheDirectory : public EnvironmentTest {};

TEST_F(CacheDirectory, EmptyEnvironmentMeansMemoryOnlyWithOneLine) {
  EXPECT_EQ(read().cache_directory, std::nullopt);
  EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr("memory only"),
                                        HasSubstr("LOGPJIT_CACHE_DIR"))));
}

TEST_F(CacheDirectory, WorksWithoutALogSink) {
  set({{"HOME", "relative"}});
  EXPECT_EQ(Options::from_environment().cache_directory, std::nullopt);
}

TEST_F(CacheDirectory, HomeIsTheLastResort) {
  const fs::path home = directory("home");
  set({{"HOME", home}});
  EXPECT_EQ(read().cache_directory, home / ".cache/logpjit");
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_TRUE(fs::is_empty(home)) << "reading the environment made something";
}

TEST_F(CacheDirectory, XdgComesBeforeHome) {
  set({{"HOME", directory("home")}, {"XDG_CACHE_HOME", scratch_ / "xdg"}});
  EXPECT_EQ(read().cache_directory, scratch_ / "xdg/logpjit");
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(CacheDirectory, OwnVariableComesFirstAndIsUsedAsItIs) {
  set({{"HOME", directory("home")},
       {"XDG_CACHE_HOME", directory("xdg")},
       {"LOGPJIT_CACHE_DIR", scratch_ / "mine/of/mine"}});
  EXPECT_EQ(read().cache_directory, scratch_ / "mine/of/mine");
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(CacheDirectory, EmptyVariablesCountAsUnset) {
  set({{"LOGPJIT_CACHE_DIR", ""},
       {"XDG_CACHE_HOME", ""},
       {"HOME", directory("home")}});
  EXPECT_EQ(read().cache_directory, scratch_ / "home/.cache/logpjit");
  EXPECT_THAT(lines_, IsEmpty());
  set({{"HOME", ""}});
  EXPECT_EQ(read().cache_directory, std::nullopt);
  EXPECT_EQ(lines_.size(), 1u);
}

class OddHome : public CacheDirectory,
                public testing::WithParamInterface<std::string> {};

TEST_P(OddHome, MeansMemoryOnlyWithOneLineThatNamesIt) {
  set({{"HOME", GetParam()}});
  EXPECT_EQ(read().cache_directory, std::nullopt);
  EXPECT_THAT(lines_,
              ElementsAre(AllOf(HasSubstr("HOME="), HasSubstr("memory only"),
                                HasSubstr("LOGPJIT_CACHE_DIR"))));
}

INSTANTIATE_TEST_SUITE_P(All, OddHome,
                         testing::Values("/", "//", "/.", "/..", "/../..",
                                         "relative", ".", "..", "./home", "~",
                                         "/nonexistent", "/dev/null",
                                         "/dev/null/home"));

TEST_F(CacheDirectory, RelativeVariablesArePassedOverInOneLine) {
  set({{"LOGPJIT_CACHE_DIR", "cache"},
       {"XDG_CACHE_HOME", "xdg"},
       {"HOME", "home"}});
  EXPECT_EQ(read().cache_directory, std::nullopt);
  EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr("LOGPJIT_CACHE_DIR="),
                                        HasSubstr("XDG_CACHE_HOME="),
                                        HasSubstr("HOME=\"home\""),
                                        HasSubstr("not an absolute path"))));
}

TEST_F(CacheDirectory, WhatIsPassedOverLeadsToTheNextAndSaysWhich) {
  set({{"XDG_CACHE_HOME", "relative"}, {"HOME", directory("home")}});
  EXPECT_EQ(read().cache_directory, scratch_ / "home/.cache/logpjit");
  EXPECT_THAT(lines_,
              ElementsAre(AllOf(HasSubstr("XDG_CACHE_HOME=\"relative\""),
                                HasSubstr("using"), HasSubstr("home"),
                                Not(HasSubstr("memory only")))));
}

TEST_F(CacheDirectory, AFileIsNoCacheDirectory) {
  set({{"LOGPJIT_CACHE_DIR", file("plain")}});
  EXPECT_EQ(read().cache_directory, std::nullopt);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("not a directory")));
  set({{"LOGPJIT_CACHE_DIR", scratch_ / "plain/below/it"}});
  EXPECT_EQ(read().cache_directory, std::nullopt);
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(CacheDirectory, TheRootDirectoryIsNoCacheDirectory) {
  set({{"LOGPJIT_CACHE_DIR", "/"}, {"XDG_CACHE_HOME", "/./"}});
  EXPECT_EQ(read().cache_directory, std::nullopt);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("the root directory")));
}

TEST_F(CacheDirectory, ALinkToADirectoryIsFollowedADanglingOneIsNot) {
  fs::create_directory_symlink(directory("home"), scratch_ / "link");
  set({{"HOME", scratch_ / "link"}});
  EXPECT_EQ(read().cache_directory, scratch_ / "link/.cache/logpjit");
  fs::create_directory_symlink(scratch_ / "gone", scratch_ / "dangling");
  set({{"HOME", scratch_ / "dangling"}});
  EXPECT_EQ(read().cache_directory, std::nullopt);
}

/// Not root while it lives: root may search every directory.
class Unprivileged {
 public:
  Unprivileged() {
    if (user_ == 0) {
      EXPECT_EQ(seteuid(65534), 0);
    }
  }
  ~Unprivileged() { EXPECT_EQ(seteuid(user_), 0); }

 private:
  uid_t user_ = geteuid();
};

TEST_F(CacheDirectory, AParentThatMayNotBeSearchedIsSaid) {
  const fs::path locked = directory("locked");
  set({{"LOGPJIT_CACHE_DIR", locked / "cache"}});
  ASSERT_EQ(chmod(scratch_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(locked.c_str(), 0), 0);
  {
    const Unprivileged user;
    EXPECT_EQ(read().cache_directory, std::nullopt);
  }
  ASSERT_EQ(chmod(locked.c_str(), 0700), 0);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("Permission denied")));
}

TEST_F(CacheDirectory, ALogLineStaysOneLine) {
  set({{"HOME", "two\nlines\x1b[31m"}});
  read();
  EXPECT_THAT(lines_,
              ElementsAre(AllOf(Not(HasSubstr("\n")), Not(HasSubstr("\x1b")),
                                HasSubstr("two\\nlines"))));
}

TEST_F(CacheDirectory, NonAsciiPathsPassUnchanged) {
  const fs::path home = directory("hömé 家");
  set({{"HOME", home}});
  EXPECT_EQ(read().cache_directory, home / ".cache/logpjit");
}

TEST_F(CacheDirectory, ReadOnlyLayersKeepTheirOrder) {
  const fs::path one = directory("one"), two = directory("two");
  set({{"HOME", directory("home")},
       {"LOGPJIT_READ_ONLY_CACHES", two.string() + ":" + one.string()}});
  EXPECT_THAT(read().read_only_caches, ElementsAre(two, one));
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(CacheDirectory, EmptyPartsOfTheListAreNothing) {
  const fs::path one = directory("one");
  set({{"HOME", directory("home")},
       {"LOGPJIT_READ_ONLY_CACHES", "::" + one.string() + ":"}});
  EXPECT_THAT(read().read_only_caches, ElementsAre(one));
  set({{"LOGPJIT_READ_ONLY_CACHES", ":::"}});
  EXPECT_THAT(read().read_only_caches, IsEmpty());
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(CacheDirectory, UnusableReadOnlyLayersArePassedOverEachWithALine) {
  const fs::path one = directory("one");
  set({{"HOME", directory("home")},
       {"LOGPJIT_READ_ONLY_CACHES",
        "relative:" + one.string() + ":" + (scratch_ / "missing").string()}});
  EXPECT_THAT(read().read_only_caches, ElementsAre(one));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("not an absolute path"),
                                  HasSubstr("no such directory")));
}

}  // namespace
}  // namespace logpjit
