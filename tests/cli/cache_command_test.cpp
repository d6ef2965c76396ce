// logpjit cache on directories that are empty, absent, damaged or refused.
#include <fmt/format.h>
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

TEST_F(CacheCommand, RepairThatCannotRemoveSaysSo) {
  store("op=logp vocab=7");
  const auto file = only_file();
  const auto key = file.filename().string();
  std::filesystem::remove(file);
  std::filesystem::create_directories(file / "inside");
  const auto result = cache({"verify", "--repair"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr(key));
  EXPECT_THAT(result.out, HasSubstr("1 damaged,"));
}

TEST_F(CacheCommand, TrimKeepsWhatWasUsedLast) {
  for (int i = 0; i < 5; ++i) store(fmt::format("op=logp vocab={}", i + 1));
  const auto all = cache({"trim"});
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("0 entries of 0 bytes removed"));
  EXPECT_THAT(cache({"trim", "--max-entries", "2"}).out, HasSubstr("removed"));
  EXPECT_THAT(cache({"ls"}).out, HasSubstr("2 entries"));
  store("op=logp vocab=9");
  EXPECT_EQ(cache({"trim", "--max-bytes", "1"}).code, 0);
  EXPECT_THAT(cache({"ls"}).out, HasSubstr("0 entries"));
  for (const char* flag : {"--max-bytes", "--max-entries"}) {
    const auto wrong = cache({"trim", flag, "-1"});
    EXPECT_EQ(wrong.code, 2);
    EXPECT_THAT(wrong.err, HasSubstr(flag));
  }
}

TEST_F(CacheCommand, TrimTakesTheLimitOfTheEnvironment) {
  for (int i = 0; i < 5; ++i) store(fmt::format("op=logp vocab={}", i + 1));
  const auto result = run_logpjit(folder_.path(), {"cache", "trim"},
                                  {"LOGPJIT_CACHE_MAX_ENTRIES=2"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(cache({"ls"}).out, HasSubstr("2 entries"));
}

TEST_F(CacheCommand, ExportAndImport) {
  store("op=logp vocab=7");
  store("op=logp vocab=8");
  const logpjit::testing::TemporaryDirectory elsewhere;
  const std::string file = elsewhere.path() / "all";
  const auto out = cache({"export", file});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_THAT(out.out, HasSubstr("2 entries"));
  const auto there = elsewhere.path() / "cache";
  const auto in = run_logpjit(there, {"cache", "import", file});
  EXPECT_EQ(in.code, 0) << in.err;
  EXPECT_THAT(in.out, HasSubstr("2 entries added"));
  EXPECT_THAT(run_logpjit(there, {"cache", "import", file}).out,
              HasSubstr("0 entries added"));
  EXPECT_THAT(run_logpjit(there, {"cache", "ls"}).out, HasSubstr("2 entries"));
}

TEST_F(CacheCommand, ImportOfADamagedFileWritesNothing) {
  store("op=logp vocab=7");
  const logpjit::testing::TemporaryDirectory elsewhere;
  const std::string file = elsewhere.path() / "all";
  cache({"export", file});
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  const auto there = elsewhere.path() / "cache";
  const auto in = run_logpjit(there, {"cache", "import", file});
  EXPECT_EQ(in.code, 2);
  EXPECT_THAT(in.err, HasSubstr(file));
  EXPECT_FALSE(std::filesystem::exists(there));
  EXPECT_NE(run_logpjit(there, {"cache", "import", "/nonexistent"}).code, 0);
}

TEST_F(CacheCommand, ExplainComparesWithTheNearest) {
  const std::vector<std::string> wanted{"explain", "--op",   "logp",
                                        "--dtype", "bf16",   "--vocab",
                                        "1000",    "--arch", "sm_90a"};
  const auto empty = cache(wanted);
  EXPECT_EQ(empty.code, 0) << empty.err;
  EXPECT_THAT(empty.out, HasSubstr("op=logp logits=bf16"));
  EXPECT_THAT(empty.out, HasSubstr("miss: there are no entries"));
  store("op=logp vocab=7");
  const auto text = cache(wanted);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("miss; the nearest entry is "));
  EXPECT_THAT(text.out, HasSubstr("-spec: op=logp vocab=7"));
  EXPECT_THAT(text.out, HasSubstr("+spec: family="));
  auto with_json = wanted;
  with_json.push_back("--json");
  const auto json = nlohmann::json::parse(cache(with_json).out);
  ASSERT_EQ(json["kernels"].size(), 1u);
  EXPECT_EQ(json["kernels"][0]["state"], "miss");
  EXPECT_EQ(json["kernels"][0]["arch"], "sm_90a");
  EXPECT_GT(json["kernels"][0]["differences"].size(), 1u);
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
