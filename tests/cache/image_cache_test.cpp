// The image cache in one process: layers, single flight, refusals.
#include "cache/image_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "cache/entry_name.hpp"
#include "logpjit/error.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::bytes_of;
using logpjit::testing::names_in;
using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::WarningLog;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

class ImageCacheTest : public ::testing::Test {
 protected:
  CacheOptions options() {
    CacheOptions options;
    options.directory = home_.path() / "cache";
    options.warn = log_.sink();
    return options;
  }
  ImageCache::Compile compiling(int number) {
    return [this, number] {
      ++compiles_;
      return sample_image(number);
    };
  }
  fs::path entry(int number) {
    return home_.path() / "cache" / entry_name(sample_key(number));
  }

  TemporaryDirectory home_;
  WarningLog log_;
  std::atomic<int> compiles_ = 0;
};

TEST_F(ImageCacheTest, CompilesOnceThenMemoryThenDisk) {
  {
    ImageCache cache(options());
    const Found first = cache.find_or_compile(sample_key(1), compiling(1));
    EXPECT_EQ(first.origin, Origin::kCompiled);
    const Found second = cache.find_or_compile(sample_key(1), compiling(1));
    EXPECT_EQ(second.origin, Origin::kMemory);
    EXPECT_EQ(second.image, first.image);
  }
  ImageCache cache(options());
  const Found third = cache.find_or_compile(sample_key(1), compiling(1));
  EXPECT_EQ(third.origin, Origin::kDisk);
  EXPECT_EQ(*third.image, sample_image(1));
  EXPECT_EQ(compiles_, 1);
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(ImageCacheTest, DirectoryIsPrivateAndHoldsNothingElse) {
  ImageCache cache(options());
  cache.find_or_compile(sample_key(1), compiling(1));
  struct stat status {};
  ASSERT_EQ(stat((home_.path() / "cache").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_THAT(
      names_in(home_.path() / "cache", ""),
      ::testing::UnorderedElementsAre(entry_name(sample_key(1)), "lock"));
}

TEST_F(ImageCacheTest, LooksWithoutMakingADirectory) {
  ImageCache cache(options());
  EXPECT_FALSE(cache.find(sample_key(1)));
  EXPECT_FALSE(fs::exists(home_.path() / "cache"));
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(ImageCacheTest, MemoryOnlyWithoutDirectory) {
  CacheOptions memory_only;
  ImageCache cache(memory_only);
  EXPECT_EQ(cache.find_or_compile(sample_key(1), compiling(1)).origin,
            Origin::kCompiled);
  EXPECT_EQ(cache.find_or_compile(sample_key(1), compiling(1)).origin,
            Origin::kMemory);
}

TEST_F(ImageCacheTest, KeysDoNotShareEntries) {
  ImageCache cache(options());
  for (int i = 0; i < 20; ++i)
    cache.find_or_compile(sample_key(i), compiling(i));
  ImageCache again(options());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(*again.find(sample_key(i))->image, sample_image(i));
  }
  EXPECT_EQ(compiles_, 20);
}

TEST_F(ImageCacheTest, ErrorsOfTheCompilerPassThroughAndAreNotRemembered) {
  ImageCache cache(options());
  const auto failing = [this]() -> Image {
    ++compiles_;
    throw Error(ErrorCode::kCompileFailed, "syntax error", "line 3");
  };
  for (int i = 0; i < 2; ++i) {
    try {
      cache.find_or_compile(sample_key(1), failing);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "syntax error");
      EXPECT_EQ(error.log(), "line 3");
    }
  }
  EXPECT_EQ(compiles_, 2);
  EXPECT_FALSE(fs::exists(entry(1)));
  EXPECT_EQ(cache.find_or_compile(sample_key(1), compiling(1)).origin,
            Origin::kCompiled);
}

TEST_F(ImageCacheTest, AnImageWithoutBytesIsAnError) {
  ImageCache cache(options());
  const auto empty = [] { return Image{}; };
  try {
    cache.find_or_compile(sample_key(1), empty);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
    EXPECT_THAT(error.message(), HasSubstr("vocab=1"));
  }
  EXPECT_FALSE(fs::exists(entry(1)));
}

TEST_F(ImageCacheTest, NeverCompileListsTheKey) {
  CacheOptions never = options();
  never.never_compile = true;
  ImageCache cache(never);
  try {
    cache.find_or_compile(sample_key(4), compiling(4));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotCached);
    EXPECT_THAT(error.message(), HasSubstr(sample_key(4).text()));
  }
  EXPECT_EQ(compiles_, 0);
}

TEST_F(ImageCacheTest, OffCompilesEachTimeAndTouchesNothing) {
  ImageCache(options()).find_or_compile(sample_key(4), compiling(4));
  CacheOptions off = options();
  off.read_only = {home_.path() / "absent"};
  off.off = true;
  ImageCache cache(off);
  compiles_ = 0;
  const auto before = fs::last_write_time(entry(4));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(cache.find_or_compile(sample_key(4), compiling(4)).origin,
              Origin::kCompiled);
    EXPECT_EQ(compiles_, i);
    EXPECT_FALSE(cache.find(sample_key(4)));
  }
  cache.find_or_compile(sample_key(5), compiling(5));
  cache.reject(sample_key(4), "refused");
  EXPECT_FALSE(fs::exists(entry(5)));
  EXPECT_EQ(fs::last_write_time(entry(4)), before);
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(ImageCacheTest, OffAndNeverExcludeEachOther) {
  CacheOptions both = options();
  both.off = both.never_compile = true;
  EXPECT_THROW(ImageCache{both}, Error);
}

TEST_F(ImageCacheTest, ThreadsShareOneCompile) {
  ImageCache cache(options());
  constexpr int kThreads = 8;
  constexpr int kRounds = 25;
  std::barrier gate(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        gate.arrive_and_wait();
        const Found found =
            cache.find_or_compile(sample_key(round), compiling(round));
        EXPECT_EQ(*found.image, sample_image(round));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(compiles_, kRounds);
}

TEST_F(ImageCacheTest, WaitersGetTheErrorAndTheNextCallTriesAgain) {
  ImageCache cache(options());
  std::atomic<int> errors = 0;
  std::barrier gate(4);
  const auto failing = []() -> Image {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    throw Error(ErrorCode::kTimeout, "slow");
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      gate.arrive_and_wait();
      try {
        cache.find_or_compile(sample_key(1), failing);
      } catch (const Error&) {
        ++errors;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(errors, 4);
  EXPECT_EQ(cache.find_or_compile(sample_key(1), compiling(1)).origin,
            Origin::kCompiled);
}

TEST_F(ImageCacheTest, ACompileForOneKeyDoesNotHoldUpAnother) {
  ImageCache cache(options());
  std::atomic<bool> release = false;
  std::thread slow([&] {
    cache.find_or_compile(sample_key(1), [&] {
      while (!release) std::this_thread::yield();
      return sample_image(1);
    });
  });
  cache.find_or_compile(sample_key(2), compiling(2));
  release = true;
  slow.join();
}

TEST_F(ImageCacheTest, RejectedEntriesAreCompiledAfresh) {
  ImageCache cache(options());
  cache.find_or_compile(sample_key(1), compiling(1));
  cache.reject(sample_key(1), "error 209");
  EXPECT_FALSE(fs::exists(entry(1)));
  EXPECT_TRUE(fs::exists(entry(1).string() + ".bad"));
  const Found found = cache.find_or_compile(sample_key(1), compiling(2));
  EXPECT_EQ(found.origin, Origin::kCompiled);
  EXPECT_EQ(*found.image, sample_image(2));
  EXPECT_EQ(*ImageCache(options()).find(sample_key(1))->image, sample_image(2));
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("error 209")));
}

TEST_F(ImageCacheTest, RejectSparesWhatAnotherProcessHasPutThere) {
  ImageCache mine(options());
  mine.find_or_compile(sample_key(1), compiling(1));
  fs::remove(entry(1));
  ImageCache(options()).find_or_compile(sample_key(1), compiling(2));
  mine.reject(sample_key(1), "refused");
  const Found found = mine.find_or_compile(sample_key(1), compiling(3));
  EXPECT_EQ(found.origin, Origin::kDisk);
  EXPECT_EQ(*found.image, sample_image(2));
}

TEST_F(ImageCacheTest, RejectOfAReadOnlyEntryLastsInThisProcess) {
  ImageCache(options()).find_or_compile(sample_key(1), compiling(1));
  CacheOptions layered = options();
  layered.directory = home_.path() / "mine";
  layered.read_only = {home_.path() / "cache"};
  {
    ImageCache cache(layered);
    EXPECT_EQ(cache.find(sample_key(1))->origin, Origin::kReadOnly);
    cache.reject(sample_key(1), "refused");
    EXPECT_FALSE(cache.find(sample_key(1)));
    EXPECT_EQ(cache.find_or_compile(sample_key(1), compiling(2)).origin,
              Origin::kCompiled);
  }
  EXPECT_TRUE(fs::exists(entry(1)));
  EXPECT_EQ(*ImageCache(layered).find(sample_key(1))->image, sample_image(2));
}

TEST_F(ImageCacheTest, SurvivesTheRemovalOfItsDirectory) {
  ImageCache cache(options());
  cache.find_or_compile(sample_key(1), compiling(1));
  fs::remove_all(home_.path() / "cache");
  cache.find_or_compile(sample_key(2), compiling(2));
  EXPECT_TRUE(fs::exists(entry(2)));
  EXPECT_THAT(log_.lines(), IsEmpty());
}

}  // namespace
}  // namespace logpjit::cache
