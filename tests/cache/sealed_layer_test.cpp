// Read-only layers: order, match without the compiler, never written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cache/entry_name.hpp"
#include "cache/image_cache.hpp"
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
using logpjit::testing::write_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

class SealedLayerTest : public ::testing::Test {
 protected:
  void fill(const std::string& directory, const Key& key, int image) {
    CacheOptions options;
    options.directory = home_.path() / directory;
    ImageCache(options).find_or_compile(key,
                                        [&] { return sample_image(image); });
  }
  CacheOptions layered(std::vector<std::string> read_only) {
    CacheOptions options;
    options.directory = home_.path() / "user";
    for (auto& name : read_only)
      options.read_only.push_back(home_.path() / name);
    options.warn = log_.sink();
    return options;
  }
  static Image unexpected() {
    throw Error(ErrorCode::kUnavailable, "there is no compiler here");
  }

  TemporaryDirectory home_;
  WarningLog log_;
};

TEST_F(SealedLayerTest, ServesAnotherCompilerOrNone) {
  fill("sealed", sample_key(1, "nvrtc 12.8"), 1);
  ImageCache cache(layered({"sealed"}));
  for (const char* compiler : {"nvrtc 13.0", "none"}) {
    const Found found =
        cache.find_or_compile(sample_key(1, compiler), unexpected);
    EXPECT_EQ(found.origin, Origin::kReadOnly);
    EXPECT_EQ(*found.image, sample_image(1));
  }
}

TEST_F(SealedLayerTest, UserLayerAsksForTheSameCompiler) {
  fill("user", sample_key(1, "nvrtc 12.8"), 1);
  ImageCache cache(layered({}));
  EXPECT_FALSE(cache.find(sample_key(1, "nvrtc 13.0")));
  EXPECT_TRUE(cache.find(sample_key(1, "nvrtc 12.8")));
}

TEST_F(SealedLayerTest, AnExactEntryGoesFirst) {
  fill("sealed", sample_key(1, "nvrtc 12.8"), 1);
  fill("sealed", sample_key(1, "nvrtc 13.0"), 2);
  fill("sealed", sample_key(1, "nvrtc 13.1"), 3);
  for (auto [compiler, image] :
       {std::pair("nvrtc 12.8", 1), {"nvrtc 13.0", 2}, {"nvrtc 13.1", 3}}) {
    ImageCache cache(layered({"sealed"}));
    EXPECT_EQ(*cache.find(sample_key(1, compiler))->image, sample_image(image));
  }
}

TEST_F(SealedLayerTest, AllProcessesChooseTheSameOfSeveral) {
  fill("sealed", sample_key(1, "nvrtc 12.8"), 1);
  fill("sealed", sample_key(1, "nvrtc 13.0"), 2);
  const auto names = names_in(home_.path() / "sealed", ".lpj");
  ASSERT_EQ(names.size(), 2u);
  const int first =
      std::min(names[0], names[1]) == entry_name(sample_key(1, "nvrtc 12.8"))
          ? 1
          : 2;
  ImageCache cache(layered({"sealed"}));
  EXPECT_EQ(*cache.find(sample_key(1, "none"))->image, sample_image(first));
}

TEST_F(SealedLayerTest, AnotherTargetIsNeverServed) {
  Key built;
  built.add("arch", "sm_120a");
  built.add("compiler", "nvrtc 13.0");
  Key wanted;
  wanted.add("arch", "sm_121a");
  wanted.add("compiler", "nvrtc 13.0");
  fill("sealed", built, 1);
  ImageCache cache(layered({"sealed"}));
  EXPECT_FALSE(cache.find(wanted));
}

TEST_F(SealedLayerTest, LayersAreSearchedInOrderAndTheUsersFirst) {
  fill("one", sample_key(1), 1);
  fill("two", sample_key(1), 2);
  fill("two", sample_key(2), 3);
  {
    ImageCache cache(layered({"one", "two"}));
    EXPECT_EQ(*cache.find(sample_key(1))->image, sample_image(1));
    EXPECT_EQ(*cache.find(sample_key(2))->image, sample_image(3));
  }
  fill("user", sample_key(1), 4);
  ImageCache cache(layered({"one", "two"}));
  EXPECT_EQ(cache.find(sample_key(1))->origin, Origin::kDisk);
}

TEST_F(SealedLayerTest, DamageIsReportedSteppedOverAndLeft) {
  fill("one", sample_key(1, "nvrtc 12.8"), 1);
  fill("two", sample_key(1, "nvrtc 12.9"), 2);
  const fs::path damaged =
      home_.path() / "one" / entry_name(sample_key(1, "nvrtc 12.8"));
  write_bytes(damaged, {});
  ImageCache cache(layered({"one", "two"}));
  EXPECT_EQ(*cache.find(sample_key(1))->image, sample_image(2));
  EXPECT_TRUE(fs::exists(damaged));
  EXPECT_THAT(names_in(home_.path() / "one", ".bad"), IsEmpty());
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr(damaged.string())));
}

TEST_F(SealedLayerTest, AFileWithAForgedSealedNameIsNotServed) {
  fill("sealed", sample_key(1), 1);
  const fs::path real = home_.path() / "sealed" / entry_name(sample_key(1));
  const Key wanted = sample_key(2, "nvrtc 12.8");
  fs::rename(real, real.parent_path() /
                       (std::string(32, '0') + sealed_ending(wanted)));
  ImageCache cache(layered({"sealed"}));
  EXPECT_FALSE(cache.find(wanted));
}

TEST_F(SealedLayerTest, SeesEntriesAddedLater) {
  fill("sealed", sample_key(1, "nvrtc 12.8"), 1);
  ImageCache cache(layered({"sealed"}));
  EXPECT_FALSE(cache.find(sample_key(2)));
  fill("sealed", sample_key(2, "nvrtc 12.8"), 2);
  EXPECT_TRUE(cache.find(sample_key(2)));
}

TEST_F(SealedLayerTest, IsNeverWritten) {
  fill("sealed", sample_key(1, "nvrtc 12.8"), 1);
  const fs::path directory = home_.path() / "sealed";
  fs::remove(directory / "lock");
  const auto before = fs::last_write_time(directory);
  CacheOptions options = layered({"sealed"});
  options.directory.reset();
  ImageCache cache(options);
  cache.find(sample_key(1));
  cache.reject(sample_key(1), "refused");
  cache.find_or_compile(sample_key(2), [] { return sample_image(2); });
  EXPECT_EQ(fs::last_write_time(directory), before);
  EXPECT_EQ(names_in(directory, "").size(), 1u);
}

TEST_F(SealedLayerTest, AbsentAndUntrustedOnesAreOneWarningEach) {
  fill("sealed", sample_key(1), 1);
  chmod((home_.path() / "sealed").c_str(), 0777);
  ImageCache cache(layered({"sealed", "absent"}));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(cache.find(sample_key(1)));
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("can be written"),
                                        HasSubstr("does not exist")));
}

}  // namespace
}  // namespace logpjit::cache
