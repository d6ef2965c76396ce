// What a process may do to itself while a thread of it is inside a compiler:
// end, fork, unload the library, be interrupted.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_directory.hpp"

namespace logpjit {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kRight = 7;
constexpr int kAbsent = 77;

/// The exit code; 128 + the number of the signal that ended it.
int run_worker(const std::string& kind, const std::string& action,
               int milliseconds) {
  std::vector<std::string> words{LOGPJIT_COMPILE_WORKER, LOGPJIT_COMPILE_MODULE,
                                 kind, action, fmt::format("{}", milliseconds)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  if (posix_spawn(&process, arguments[0], nullptr, nullptr, arguments.data(),
                  environ) != 0) {
    return -1;
  }
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Case {
  const char* kind;
  const char* action;
};

class Compiling : public ::testing::TestWithParam<Case> {};

TEST_P(Compiling, IsLeftInPeace) {
  // Odd pauses begin with the compiler's very first use.
  for (const int pause : {1, 15, 40}) {
    const auto begin = Clock::now();
    const int code = run_worker(GetParam().kind, GetParam().action, pause);
    if (code == kAbsent) {
      GTEST_SKIP() << "no compiler of kind " << GetParam().kind;
    }
    EXPECT_EQ(code, kRight) << GetParam().action << " after " << pause << " ms";
    EXPECT_LT(Seconds(Clock::now() - begin).count(), 30);
  }
}

/// What a first use makes: the parts of a runtime, and the driver's table.
TEST(FirstUse, IsOverOrNotYetBegunInAForkedChild) {
  const testing::TemporaryDirectory folder;
  const std::string cache = folder.path() / "cache";
  setenv("LOGPJIT_CACHE_DIR", cache.c_str(), 1);
  setenv("LOGPJIT_DRIVER", LOGPJIT_FAKE_DRIVER, 1);
  // Compiles what the runtimes of below find in the cache.
  const int compiled = run_worker("runtime", "signals", 1);
  for (const char* kind : {"runtime", "driver"}) {
    if (kind[0] == 'r' && compiled == kAbsent) continue;
    for (const int pause : {1, 15, 41}) {
      EXPECT_EQ(run_worker(kind, "locks", pause), kRight)
          << kind << " after " << pause << " ms";
    }
  }
  unsetenv("LOGPJIT_CACHE_DIR");
  unsetenv("LOGPJIT_DRIVER");
}

TEST(CompilingBesideOthers, TemporaryFoldersStayEmpty) {
  const testing::TemporaryDirectory folder;
  setenv("TMPDIR", folder.path().c_str(), 1);
  for (const char* kind : {"nvrtc", "host"}) {
    std::vector<std::thread> others;
    for (int i = 0; i < 8; ++i) {
      others.emplace_back([&] {
        const int code = run_worker(kind, "signals", 1);
        EXPECT_TRUE(code == kRight || code == kAbsent) << code;
      });
    }
    for (std::thread& other : others) other.join();
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << kind;
  }
  unsetenv("TMPDIR");
}

std::string name_of(const ::testing::TestParamInfo<Case>& each) {
  return fmt::format("{}_{}", each.param.kind, each.param.action);
}

INSTANTIATE_TEST_SUITE_P(
    Nvrtc, Compiling,
    ::testing::Values(Case{"nvrtc", "return"}, Case{"nvrtc", "exit"},
                      Case{"nvrtc", "dlclose"}, Case{"nvrtc", "fork"},
                      Case{"nvrtc", "locks"}, Case{"nvrtc", "timer"},
                      Case{"nvrtc", "signals"}),
    name_of);
INSTANTIATE_TEST_SUITE_P(
    Host, Compiling,
    ::testing::Values(Case{"host", "return"}, Case{"host", "exit"},
                      Case{"host", "dlclose"}, Case{"host", "fork"},
                      Case{"host", "locks"}, Case{"host", "timer"},
                      Case{"host", "signals"}),
    name_of);

}  // namespace
}  // namespace logpjit
