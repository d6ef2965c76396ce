// The real file system: errors as numbers, and the signal of size limits.
#include "cache/file_system.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::TemporaryDirectory;

class FileSystemTest : public ::testing::Test {
 protected:
  std::string at(const std::string& name) { return home_.path() / name; }
  FileSystem& files_ = real_file_system();
  TemporaryDirectory home_;
};

TEST_F(FileSystemTest, ErrorsAreNegativeNumbers) {
  struct stat status {};
  std::string target;
  std::vector<std::string> names;
  EXPECT_EQ(files_.open(at("none"), O_RDONLY, 0), -ENOENT);
  EXPECT_EQ(files_.status(at("none"), status), -ENOENT);
  EXPECT_EQ(files_.read_link(at("none"), target), -ENOENT);
  EXPECT_EQ(files_.rename(at("none"), at("other")), -ENOENT);
  EXPECT_EQ(files_.remove(at("none")), -ENOENT);
  EXPECT_EQ(files_.touch(at("none")), -ENOENT);
  EXPECT_EQ(files_.list(at("none"), names), -ENOENT);
  EXPECT_EQ(files_.make_directory(home_.path(), 0700), -EEXIST);
  EXPECT_EQ(files_.close(-1), -EBADF);
  EXPECT_EQ(files_.lock(-1, 0), -EBADF);
}

TEST_F(FileSystemTest, ListsWithoutTheDots) {
  std::ofstream(at("a")) << "x";
  files_.make_directory(at("b"), 0700);
  std::vector<std::string> names = {"left over"};
  EXPECT_EQ(files_.list(home_.path(), names), 0);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
}

TEST_F(FileSystemTest, DescriptorsAreNotInheritedByOtherPrograms) {
  const int file = files_.open(at("a"), O_CREAT | O_RDWR, 0600);
  EXPECT_EQ(fcntl(file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(files_.close(file), 0);
}

TEST_F(FileSystemTest, RemovesFilesLinksAndEmptyDirectories) {
  std::ofstream(at("file")) << "x";
  std::filesystem::create_symlink("file", at("link"));
  files_.make_directory(at("folder"), 0700);
  EXPECT_EQ(files_.remove(at("link")), 0);
  EXPECT_TRUE(std::filesystem::exists(at("file")));
  EXPECT_EQ(files_.remove(at("folder")), 0);
  EXPECT_EQ(files_.remove(at("file")), 0);
}

/// What remains of the signal after a write that was too long, as an exit code.
int write_over_the_limit(const std::string& path, bool pending_before) {
  const pid_t child = fork();
  if (child != 0) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  const rlimit limit{10, 10};
  setrlimit(RLIMIT_FSIZE, &limit);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  if (pending_before) {
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    raise(SIGXFSZ);
  }
  FileSystem& files = real_file_system();
  const OpenFile file(files, files.open(path, O_CREAT | O_WRONLY, 0600));
  const char text[] = "longer than ten bytes";
  const int error = write_all(files, file.number(), text, sizeof(text));
  sigset_t pending;
  sigpending(&pending);
  const bool still = sigismember(&pending, SIGXFSZ) == 1;
  _exit(error == -EFBIG && still == pending_before ? 0 : 1);
}

TEST_F(FileSystemTest, TheSignalOfALimitIsTakenBack) {
  EXPECT_EQ(write_over_the_limit(at("a"), false), 0);
}

TEST_F(FileSystemTest, ASignalPendingBeforeStaysPending) {
  EXPECT_EQ(write_over_the_limit(at("a"), true), 0);
}

}  // namespace
}  // namespace logpjit::cache
