// Why a key misses.
#include "cache/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cache/entry_name.hpp"
#include "cache/image_cache.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::write_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using State = Explanation::State;

namespace fs = std::filesystem;

class ExplainTest : public ::testing::Test {
 protected:
  fs::path at(const std::string& name) { return home_.path() / name; }
  void fill(const std::string& name, const Key& key) {
    CacheOptions options;
    options.directory = at(name);
    ImageCache(options).find_or_compile(key, [] { return sample_image(1); });
  }
  Explanation explained(const Key& key) {
    return explain(real_file_system(), key,
                   {{at("user"), Role::kUser}, {at("ro"), Role::kReadOnly}});
  }
  static Key key(const std::string& arch, const std::string& spec,
                 const std::string& compiler = "nvrtc 13.0") {
    Key key;
    key.add("arch", arch);
    key.add("spec", spec);
    key.add("compiler", compiler);
    return key;
  }
  TemporaryDirectory home_;
};

TEST_F(ExplainTest, DifferenceListsFieldsOfEitherKey) {
  Key a;
  a.add("arch", "sm_90a");
  a.add("only_a", "1");
  a.add("same", "x");
  Key b;
  b.add("arch", "sm_80");
  b.add("only_b", "2");
  b.add("same", "x");
  const auto found = difference(a, b);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "arch");
  EXPECT_EQ(found[0].wanted, "sm_90a");
  EXPECT_EQ(found[0].present, "sm_80");
  EXPECT_EQ(found[1].name, "only_a");
  EXPECT_FALSE(found[1].present);
  EXPECT_EQ(found[2].name, "only_b");
  EXPECT_FALSE(found[2].wanted);
  EXPECT_THAT(difference(a, a), IsEmpty());
}

TEST_F(ExplainTest, NothingAtAll) {
  const Explanation found = explained(key("sm_90a", "a"));
  EXPECT_EQ(found.state, State::kMiss);
  EXPECT_THAT(found.text(), HasSubstr("there are no entries"));
  EXPECT_FALSE(fs::exists(at("user")));
}

TEST_F(ExplainTest, HitsInEitherLayer) {
  fill("user", key("sm_90a", "a"));
  fill("ro", key("sm_90a", "b", "nvrtc 12.8"));
  EXPECT_EQ(explained(key("sm_90a", "a")).state, State::kHit);
  const Explanation sealed = explained(key("sm_90a", "b"));
  EXPECT_EQ(sealed.state, State::kSealedHit);
  EXPECT_EQ(sealed.place, at("ro"));
  EXPECT_EQ(explained(key("sm_90a", "b", "nvrtc 12.8")).state, State::kHit);
}

TEST_F(ExplainTest, ShowsTheNearestAsADifference) {
  fill("user", key("sm_80", "a", "nvrtc 12.8"));
  fill("ro", key("sm_80", "b"));
  const Explanation found = explained(key("sm_90a", "b"));
  EXPECT_EQ(found.state, State::kMiss);
  EXPECT_EQ(found.place, at("ro"));
  EXPECT_EQ(found.name, entry_name(key("sm_80", "b")));
  EXPECT_THAT(found.text(), HasSubstr("--- that entry\n+++ wanted\n"
                                      "-arch: sm_80\n+arch: sm_90a\n"));
}

TEST_F(ExplainTest, AnotherCompilerIsAMissInTheUserLayer) {
  fill("user", key("sm_90a", "a", "nvrtc 12.8"));
  const Explanation found = explained(key("sm_90a", "a"));
  EXPECT_EQ(found.state, State::kMiss);
  EXPECT_THAT(found.text(), HasSubstr("-compiler: nvrtc 12.8\n"
                                      "+compiler: nvrtc 13.0\n"));
}

TEST_F(ExplainTest, LongValuesAreShownWhereTheyDiffer) {
  const std::string head(5000, 'x');
  const std::string tail(5000, 'y');
  fill("user", key("sm_90a", head + "OLD" + tail));
  const std::string text = explained(key("sm_90a", head + "NEW" + tail)).text();
  EXPECT_LT(text.size(), 1000u);
  EXPECT_THAT(text, HasSubstr("xNEWy"));
  EXPECT_THAT(text, HasSubstr("xOLDy"));
}

TEST_F(ExplainTest, NamesWhatStandsInTheWay) {
  fill("user", key("sm_90a", "a"));
  write_bytes(at("user") / entry_name(key("sm_90a", "a")), {});
  fill("ro", key("sm_90a", "a"));
  chmod(at("ro").c_str(), 0777);
  const Explanation found = explained(key("sm_90a", "a"));
  EXPECT_EQ(found.state, State::kMiss);
  EXPECT_THAT(found.obstacles, ElementsAre(HasSubstr("only 0 bytes long"),
                                           HasSubstr("written by every")));
}

}  // namespace
}  // namespace logpjit::cache
