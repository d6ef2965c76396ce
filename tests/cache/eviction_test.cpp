// Limits: what goes, what stays, when.
#include "cache/eviction.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "cache/entry_name.hpp"
#include "cache/image_cache.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::names_in;
using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;

namespace fs = std::filesystem;

constexpr std::time_t kHour = 3600;

class EvictionTest : public ::testing::Test {
 protected:
  fs::path entry(int number) {
    return home_.path() / entry_name(sample_key(number));
  }
  fs::path add(int number, std::size_t bytes, std::time_t age) {
    std::ofstream(entry(number)) << std::string(bytes, 'x');
    make_old(entry(number), age);
    return entry(number);
  }
  static void make_old(const fs::path& path, std::time_t age) {
    const timespec stamp{std::time(nullptr) - age, 0};
    const timespec times[2] = {stamp, stamp};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }
  TrimResult trimmed(std::uint64_t bytes, std::uint64_t entries) {
    return trim(real_file_system(), home_.path(), {bytes, entries});
  }

  TemporaryDirectory home_;
};

TEST_F(EvictionTest, WithinLimitsNothingGoes) {
  for (int i = 0; i < 10; ++i) add(i, 100, i);
  const TrimResult result = trimmed(1000, 10);
  EXPECT_EQ(result.removed_entries, 0u);
  EXPECT_EQ(result.kept_entries, 10u);
  EXPECT_EQ(result.kept_bytes, 1000u);
}

TEST_F(EvictionTest, OldestUseGoesFirstDownToNineTenths) {
  for (int i = 0; i < 20; ++i) add(i, 100, 1000 * i);
  const TrimResult result = trimmed(1'000'000, 10);
  EXPECT_EQ(result.removed_entries, 11u);
  EXPECT_EQ(result.kept_entries, 9u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(fs::exists(entry(i)), i < 9) << i;
}

TEST_F(EvictionTest, BytesCountToo) {
  for (int i = 0; i < 10; ++i) add(i, 1000, i);
  const TrimResult result = trimmed(5000, 100);
  EXPECT_LE(result.kept_bytes, 4500u);
  EXPECT_EQ(result.kept_entries, 4u);
  EXPECT_EQ(result.removed_bytes, 6000u);
}

TEST_F(EvictionTest, ZeroEmpties) {
  add(1, 10, 0);
  EXPECT_EQ(trimmed(0, 0).kept_entries, 0u);
  EXPECT_TRUE(fs::is_empty(home_.path()));
}

TEST_F(EvictionTest, OthersFilesStay) {
  add(1, 10, 0);
  for (const char* name : {"lock", "configs.jsonl", "notes.txt", "x.lpj"}) {
    std::ofstream(home_.path() / name) << "x";
    make_old(home_.path() / name, 1000 * kHour);
  }
  trimmed(0, 0);
  EXPECT_EQ(names_in(home_.path(), "").size(), 4u);
}

TEST_F(EvictionTest, AbandonedTemporariesGoAndYoungOnesStay) {
  for (const char* name : {".tmp-old", ".tmp-young"}) {
    std::ofstream(home_.path() / name) << "x";
  }
  make_old(home_.path() / ".tmp-old", 2 * kHour);
  trimmed(1000, 1000);
  EXPECT_FALSE(fs::exists(home_.path() / ".tmp-old"));
  EXPECT_TRUE(fs::exists(home_.path() / ".tmp-young"));
}

TEST_F(EvictionTest, EntriesSetAsideCount) {
  add(1, 10, 0);
  const std::string bad = entry(2).string() + ".bad";
  fs::rename(add(2, 10, 10), bad);
  EXPECT_EQ(trimmed(1000, 1).removed_entries, 1u);
  EXPECT_FALSE(fs::exists(bad));
}

TEST_F(EvictionTest, UseRenewsTheStampAtMostOnceAnHour) {
  CacheOptions options;
  options.directory = home_.path() / "cache";
  ImageCache(options).find_or_compile(sample_key(1),
                                      [] { return sample_image(1); });
  const fs::path path = *options.directory / entry_name(sample_key(1));
  const auto age = [&] {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return std::time(nullptr) - status.st_mtim.tv_sec;
  };
  make_old(path, kHour / 2);
  EXPECT_TRUE(ImageCache(options).find(sample_key(1)));
  EXPECT_GE(age(), kHour / 2);
  make_old(path, 2 * kHour);
  EXPECT_TRUE(ImageCache(options).find(sample_key(1)));
  EXPECT_LT(age(), 60);
  make_old(path, -100 * kHour);  // from a machine whose clock is ahead
  EXPECT_TRUE(ImageCache(options).find(sample_key(1)));
  EXPECT_LT(std::abs(age()), 60);
}

TEST_F(EvictionTest, PublishingKeepsTheLimit) {
  CacheOptions options;
  options.directory = home_.path() / "cache";
  options.limits.entries = 50;
  ImageCache cache(options);
  for (int i = 0; i < 200; ++i) {
    cache.find_or_compile(sample_key(i), [&] { return sample_image(i, 10); });
    EXPECT_LE(names_in(*options.directory, ".lpj").size(), 55u);
  }
  EXPECT_GE(names_in(*options.directory, ".lpj").size(), 40u);
}

TEST_F(EvictionTest, OneShotProcessesKeepTheLimit) {
  CacheOptions options;
  options.directory = home_.path() / "cache";
  options.limits.entries = 10;
  for (int i = 0; i < 40; ++i) {
    ImageCache(options).find_or_compile(sample_key(i),
                                        [&] { return sample_image(i, 10); });
  }
  EXPECT_LE(names_in(*options.directory, ".lpj").size(), 11u);
}

}  // namespace
}  // namespace logpjit::cache
