// fork before, after and during a compile.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cache/fork_safe_mutex.hpp"
#include "cache/image_cache.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;

/// Runs `check` in a forked child; true when it came back true in time.
template <class Check>
bool in_child(Check check) {
  constexpr unsigned kLongestSeconds = 20;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(kLongestSeconds);
    _exit(check() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class ForkTest : public ::testing::Test {
 protected:
  CacheOptions options(bool on_disk = true) {
    CacheOptions options;
    if (on_disk) options.directory = home_.path() / "cache";
    options.lock_timeout_s = 0.2;
    return options;
  }
  static Origin find(ImageCache& cache, int number) {
    return cache
        .find_or_compile(sample_key(number),
                         [&] { return sample_image(number); })
        .origin;
  }
  TemporaryDirectory home_;
};

TEST_F(ForkTest, ChildrenUseWhatTheParentHas) {
  ImageCache cache(options());
  find(cache, 1);
  EXPECT_TRUE(in_child([&] {
    return find(cache, 1) == Origin::kMemory &&
           find(cache, 2) == Origin::kCompiled;
  }));
  EXPECT_EQ(find(cache, 2), Origin::kDisk);
}

TEST_F(ForkTest, ACompileUnderWayElsewhereIsBegunAgainInTheChild) {
  for (bool on_disk : {false, true}) {
    ImageCache cache(options(on_disk));
    std::atomic<bool> started = false;
    std::atomic<bool> release = false;
    std::thread compiling([&] {
      cache.find_or_compile(sample_key(1), [&] {
        started = true;
        while (!release) std::this_thread::yield();
        return sample_image(1);
      });
    });
    while (!started) std::this_thread::yield();
    EXPECT_TRUE(in_child([&] { return find(cache, 1) == Origin::kCompiled; }));
    release = true;
    compiling.join();
    EXPECT_EQ(find(cache, 1), Origin::kMemory);
  }
}

TEST_F(ForkTest, ForksAmidBusyThreadsDoNotHang) {
  ImageCache cache(options());
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) find(cache, (t * 7 + i) % 50);
    });
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(in_child([&] {
      find(cache, i);
      return find(cache, i) == Origin::kMemory;
    }));
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST_F(ForkTest, GenerationsDiffer) {
  const auto mine = fork_generation();
  EXPECT_TRUE(in_child([&] { return fork_generation() != mine; }));
  EXPECT_EQ(fork_generation(), mine);
}

TEST_F(ForkTest, AChildOutlivingItsParentsCompileHoldsNobodyUpForLong) {
  // The child inherits the descriptor that holds the parent's lock.
  ImageCache cache(options());
  std::atomic<pid_t> sleeper = 0;
  cache.find_or_compile(sample_key(1), [&] {
    sleeper = fork();
    if (sleeper == 0) {
      sleep(30);
      _exit(0);
    }
    return sample_image(1);
  });
  ImageCache other(options());
  EXPECT_EQ(find(other, 1), Origin::kDisk);
  std::filesystem::remove_all(home_.path() / "cache");
  EXPECT_EQ(find(other, 2), Origin::kCompiled);
  kill(sleeper, SIGKILL);
  waitpid(sleeper, nullptr, 0);
}

}  // namespace
}  // namespace logpjit::cache
