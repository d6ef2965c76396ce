// logpjit cache on directories that are empty, absent, damaged or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cache/image_cache.hpp"
#include "tests/cli/program.hpp"

namespace logpjit::cli {
namespace {

using ::testing::HasSubstr;

class CacheCommand : public ::testing::Test {
 protected:
  /// Puts one entry in the cache, made up.
  cache::Key store(const std::string& spec) {
    cache::Key key;
    key.add("arch", "sm_90a");
    key.add("spec", spec);
    cache::CacheOptions options;
    options.directory = folder_.path();
    cache::ImageCache images(options);
    images.find_or_compile(key, [] {
      cache::Image image;
      image.bytes.resize(100);
      image.entry = "kernel";
      return image;
    });
    return key;
  }
  ProgramResult cache(std::vector<std::string> words) {
    words.insert(words.begin(), "cache");
    return run_logpjit(folder_.path(), words);
  }
  std::filesystem::path only_file() {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder_.path())) {
      if (entry.is_regular_file() && entry.file_size() > 100) {
        return entry.path();
      }
    }
    return {};
  }

  logpjit::testing::TemporaryDirectory folder_;
};

TEST_F(CacheCommand, Path) {
  EXPECT_EQ(cache({"path"}).out, folder_.path().string() + "\n");
  const auto flag = run_logpjit(
      "/nowhere", {"cache", "path", "--cache-dir", folder_.path().string()});
  EXPECT_EQ(flag.out, folder_.path().string() + "\n");
}

TEST_F(CacheCommand, ListsWhatIsThere) {
  EXPECT_THAT(cache({"ls"}).out, HasSubstr("0 entries"));
  const cache::Key key = store("op=logp vocab=7");
  const auto text = cache({"ls"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("op=logp vocab=7"));
  EXPECT_THAT(text.out, HasSubstr("1 entries"));
  const auto json = nlohmann::json::parse(cache({"ls", "--json"}).out);
  EXPECT_EQ(json["entries"].size(), 1u);
  EXPECT_EQ(json["entries"][0]["key"]["arch"], "sm_90a");
  EXPECT_THAT(json["entries"][0]["name"].get<std::string>(),
              HasSubstr(key.hash().substr(0, 8)));
}

TEST_F(CacheCommand, ShowsOneByItsBeginning) {
  const cache::Key key = store("op=logp vocab=7");
  const auto text = cache({"show", key.hash().substr(0, 8)});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("spec: op=logp vocab=7"));
  const auto none = cache({"show", "ffffffffffff"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("ffffffffffff"));
}

TEST_F(CacheCommand, VerifyFindsDamage) {
  store("op=logp vocab=7");
  EXPECT_THAT(cache({"verify"}).out, HasSubstr("1 good, 0 damaged"));
  const auto file = only_file();
  {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(50);
    stream.put('!');
  }
  const auto damaged = cache({"verify"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.out, HasSubstr("0 good, 1 damaged"));
  EXPECT_EQ(cache({"verify", "--repair"}).code, 0);
  EXPECT_THAT(cache({"verify"}).out, HasSubstr("0 good, 0 damaged"));
}

TEST_F(CacheCommand, ClearRemovesEntries) {
  store("op=logp vocab=7");
  store("op=logp vocab=8");
  EXPECT_THAT(cache({"clear"}).out, HasSubstr("2 entries removed"));
  EXPECT_THAT(cache({"ls"}).out, HasSubstr("0 entries"));
}

TEST_F(CacheCommand, ADirectoryThatOthersMayWrite) {
  std::filesystem::permissions(folder_.path(),
                               std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  const auto result = cache({"ls"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr(folder_.path().string()));
}

TEST(CacheWithoutDirectory, SaysWhatToDo) {
  const auto result = run_logpjit("", {"cache", "path"}, {"HOME=/nonexistent"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("give --cache-dir or set "
                                    "LOGPJIT_CACHE_DIR"));
}

}  // namespace
}  // namespace logpjit::cli
