// What must never be stored, and what must never be served for something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/digest.hpp"
#include "cache/entry_name.hpp"
#include "cache/image_cache.hpp"
#include "logpjit/error.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::names_in;
using logpjit::testing::sample_image;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::WarningLog;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Build {
  std::string source = "max = -inf;";
  std::string arch = "sm_90a";
  std::string compiler = "nvrtc 13.0 build-id aa";

  Key key() const {
    Key key;
    key.add("arch", arch);
    key.add("compiler", compiler);
    key.add("source", hex(digest(source)));
    return key;
  }
};

class StaleTest : public ::testing::Test {
 protected:
  ImageCache& cache() {
    CacheOptions options;
    options.directory = home_.path() / "user";
    options.read_only = {home_.path() / "sealed"};
    // Another process each time: nothing comes from memory.
    cache_ = std::make_unique<ImageCache>(options);
    return *cache_;
  }
  Found find(const Build& build, int image) {
    return cache().find_or_compile(build.key(),
                                   [&] { return sample_image(image); });
  }
  void seal(const Build& build, int image) {
    CacheOptions options;
    options.directory = home_.path() / "sealed";
    ImageCache(options).find_or_compile(build.key(),
                                        [&] { return sample_image(image); });
  }
  TemporaryDirectory home_;
  std::unique_ptr<ImageCache> cache_;
};

TEST_F(StaleTest, AFailedCompileLeavesNothingAndFailsAgain) {
  const Build broken;
  for (int i = 0; i < 2; ++i) {
    try {
      cache().find_or_compile(broken.key(), []() -> Image {
        throw Error(ErrorCode::kCompileFailed, "3:7: expected ';'");
      });
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "3:7: expected ';'");
    }
    EXPECT_THAT(names_in(home_.path() / "user", ".lpj"), IsEmpty());
  }
  EXPECT_EQ(find({.source = "fixed"}, 1).origin, Origin::kCompiled);
}

TEST_F(StaleTest, SuccessWithoutCodeIsAnErrorBeforeAnythingIsStored) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(cache().find_or_compile(Build{}.key(), [] { return Image{}; }),
                 Error);
    EXPECT_THAT(names_in(home_.path() / "user", ".lpj"), IsEmpty());
  }
}

TEST_F(StaleTest, OneChangedConstantInTheSourceIsAnotherKernel) {
  EXPECT_EQ(find({.source = "max = -inf;"}, 1).origin, Origin::kCompiled);
  const Found edited = find({.source = "max = -999;"}, 2);
  EXPECT_EQ(edited.origin, Origin::kCompiled);
  EXPECT_EQ(*edited.image, sample_image(2));
  EXPECT_EQ(*find({.source = "max = -inf;"}, 3).image, sample_image(1));
}

TEST_F(StaleTest, TargetsHaveEntriesOfTheirOwn) {
  find({.arch = "sm_90a"}, 1);
  find({.arch = "sm_100a"}, 2);
  find({.arch = "sm_90"}, 3);
  EXPECT_THAT(names_in(home_.path() / "user", ".lpj"), SizeIs(3));
  EXPECT_EQ(*find({.arch = "sm_90a"}, 4).image, sample_image(1));
  EXPECT_EQ(*find({.arch = "sm_100a"}, 4).image, sample_image(2));
}

TEST_F(StaleTest, ANeighbouringTargetIsNotServedFromAnyLayer) {
  find({.arch = "sm_120a"}, 1);
  seal({.arch = "sm_120a"}, 1);
  EXPECT_FALSE(cache().find(Build{.arch = "sm_121a"}.key()));
}

TEST_F(StaleTest, AnUpdatedCompilerMissesInTheUsersLayerOnly) {
  find({}, 1);
  const Build updated{.compiler = "nvrtc 13.0 build-id bb"};
  EXPECT_FALSE(cache().find(updated.key()));
  seal({}, 2);
  const auto sealed = cache().find(updated.key());
  ASSERT_TRUE(sealed);
  EXPECT_EQ(sealed->origin, Origin::kReadOnly);
  EXPECT_EQ(*sealed->image, sample_image(2));
}

TEST_F(StaleTest, ARefusedImageIsCompiledOnceMoreAndTheNewOneIsKept) {
  find({}, 1);
  cache_->reject(Build{}.key(), "error 209");
  EXPECT_EQ(
      cache_->find_or_compile(Build{}.key(), [] { return sample_image(2); })
          .origin,
      Origin::kCompiled);
  EXPECT_EQ(*find({}, 3).image, sample_image(2));
}

TEST_F(StaleTest, ARefusedImageThatIsCompiledTheSameAgainIsNotHiddenForEver) {
  find({}, 1);
  cache_->reject(Build{}.key(), "out of memory");
  int compiles = 0;
  const auto compile = [&] {
    ++compiles;
    return sample_image(1);
  };
  cache_->find_or_compile(Build{}.key(), compile);
  EXPECT_EQ(cache_->find_or_compile(Build{}.key(), compile).origin,
            Origin::kMemory);
  EXPECT_EQ(compiles, 1);
  EXPECT_EQ(find({}, 2).origin, Origin::kDisk);
}

}  // namespace
}  // namespace logpjit::cache
