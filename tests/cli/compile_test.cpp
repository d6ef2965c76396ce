// logpjit compile, for this processor and, where there is NVRTC, for GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace logpjit::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

class Compile : public ::testing::Test {
 protected:
  ProgramResult compile(const std::string& arch,
                        std::vector<std::string> more = {}) {
    std::vector<std::string> words{"compile", "--op",   "logp",
                                   "--dtype", "bf16",   "--vocab",
                                   "1000",    "--arch", arch};
    words.insert(words.end(), more.begin(), more.end());
    return run_logpjit(folder_.path(), words);
  }

  logpjit::testing::TemporaryDirectory folder_;
};

void expect_entries(const ProgramResult& result, std::size_t count,
                    const std::string& cache) {
  ASSERT_EQ(result.code, 0) << result.err;
  const Json document = Json::parse(result.out);
  ASSERT_EQ(document["entries"].size(), count);
  for (const Json& entry : document["entries"]) {
    EXPECT_EQ(entry["cache"], cache);
    EXPECT_GT(entry["size"], 0);
  }
}

bool have_nvrtc() {
  const auto result = run_logpjit(shared_cache(), {"devices", "--json"});
  return Json::parse(result.out)["compilers"][1]["why_not"] == "";
}

TEST_F(Compile, MissThenHit) {
  expect_entries(compile("cpu", {"--json"}), 1, "miss");
  expect_entries(compile("cpu", {"--json"}), 1, "hit");
  const auto table = compile("cpu");
  EXPECT_EQ(table.code, 0);
  EXPECT_THAT(table.out, HasSubstr("hit"));
}

TEST_F(Compile, FourArchitecturesWithoutAGpu) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const std::string archs = "sm_80,sm_90a,sm_100a,sm_120a";
  const auto first = compile(archs, {"--json"});
  expect_entries(first, 4, "miss");
  for (const Json& entry : Json::parse(first.out)["entries"]) {
    EXPECT_EQ(entry["spills"], 0);
    EXPECT_GT(entry["registers"], 0);
  }
  expect_entries(compile(archs, {"--json"}), 4, "hit");
}

TEST_F(Compile, SideBySideInTheOrderOfTheConfigurations) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Words words{"compile", "--op",  "logp",   "--dtype", "bf16",
                    "--vocab", "75968", "--arch", "sm_90a",  "--json"};
  const auto configs_of = [](const Json& document) {
    Words configs;
    for (const Json& entry : document["entries"]) {
      configs.push_back(entry["config"]);
    }
    return configs;
  };
  const auto cold = run_logpjit(folder_.path(), words);
  expect_entries(cold, 5, "miss");
  const Json document = Json::parse(cold.out);
  const Words configs = configs_of(document);
  EXPECT_EQ(configs.front(), "parts=4,split=16");
  EXPECT_EQ(configs.back(), "block=1024,flight=1,min_blocks=2");
  EXPECT_GE(document["threads"], 1);
  for (const Json& entry : document["entries"]) {
    EXPECT_LE(entry["ms"], document["ms"]);
  }
  const auto warm = run_logpjit(folder_.path(), words);
  expect_entries(warm, 5, "hit");
  EXPECT_EQ(configs_of(Json::parse(warm.out)), configs);
}

TEST_F(Compile, AnArchitectureTheCompilerDoesNotKnow) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const auto result = compile("sm_999");
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("--arch: "));
  EXPECT_THAT(result.err, HasSubstr("sm_999"));
}

TEST_F(Compile, NoArchitecture) {
  EXPECT_EQ(compile(",").code, 2);
  EXPECT_EQ(compile("sm90").code, 2);
}

TEST_F(Compile, NeverCompile) {
  const auto result = run_logpjit(folder_.path(),
                                  {"compile", "--op", "logp", "--dtype", "bf16",
                                   "--vocab", "1000", "--arch", "cpu"},
                                  {"LOGPJIT_COMPILE=never"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("logpjit: error: "));
}

TEST_F(Compile, RequireCachedListsTheKeyOfAMiss) {
  const auto miss = compile("cpu", {"--require-cached"});
  EXPECT_EQ(miss.code, 1);
  EXPECT_THAT(miss.err, HasSubstr("spec: family="));
  EXPECT_THAT(miss.err, HasSubstr("cache explain"));
  EXPECT_EQ(compile("cpu").code, 0);
  expect_entries(compile("cpu", {"--require-cached", "--json"}), 1, "hit");
  const auto explained = run_logpjit(
      folder_.path(), {"cache", "explain", "--op", "logp", "--dtype", "bf16",
                       "--vocab", "1000", "--arch", "cpu"});
  EXPECT_THAT(explained.out, HasSubstr("\nhit: "));
}

TEST_F(Compile, NoCacheKeepsAndReadsNothing) {
  expect_entries(compile("cpu", {"--no-cache", "--json"}), 1, "miss");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  expect_entries(compile("cpu", {"--json"}), 1, "miss");
  expect_entries(compile("cpu", {"--no-cache", "--json"}), 1, "miss");
  EXPECT_EQ(compile("cpu", {"--no-cache", "--require-cached"}).code, 2);
}

TEST_F(Compile, SettingsThatExcludeEachOther) {
  const Words words{"compile", "--op", "logp",   "--dtype", "bf16",
                    "--vocab", "1000", "--arch", "cpu"};
  const auto result = run_logpjit(
      folder_.path(), words, {"LOGPJIT_COMPILE=never", "LOGPJIT_CACHE=off"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("caches are switched off"));
}

/// By either command that offers it.
class Check : public Compile,
              public ::testing::WithParamInterface<const char*> {
 protected:
  ProgramResult check(const std::string& list, Words more = {}) {
    std::ofstream(folder_.path() / "list") << list;
    Words words{GetParam(), "--check", folder_.path() / "list"};
    words.insert(words.end(), more.begin(), more.end());
    return run_logpjit(folder_.path() / "cache", words);
  }
};

INSTANTIATE_TEST_SUITE_P(, Check, ::testing::Values("compile", "pretune"),
                         [](const auto& at) { return at.param; });

TEST_P(Check, ProvesAListComplete) {
  const std::string list =
      "# the trainer's kernels\n\n"
      "op=logp dtype=bf16 vocab=1000 arch=cpu\n"
      "  vocab=2000 logits=fp32 op=logp ids=int32 \n";
  const auto before = check(list, {"--arch", "cpu"});
  EXPECT_EQ(before.code, 1) << before.err;
  EXPECT_THAT(before.out, HasSubstr("2 kernels wanted, 2 missing"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "cache"));
  for (const Words& each :
       {Words{"bf16", "1000", "int64"}, Words{"fp32", "2000", "int32"}}) {
    const auto made =
        run_logpjit(folder_.path() / "cache",
                    {"compile", "--op", "logp", "--arch", "cpu", "--dtype",
                     each[0], "--vocab", each[1], "--ids", each[2]});
    ASSERT_EQ(made.code, 0) << made.err;
  }
  const auto after = check(list, {"--arch", "cpu"});
  EXPECT_EQ(after.code, 0) << after.out;
  EXPECT_THAT(after.out, HasSubstr("2 kernels wanted, 0 missing"));
}

TEST_P(Check, WhatIsMissingIsALineOfAList) {
  const auto result = check(
      "op=kl_backward dtype=bf16 vocab=1000 grad_b=1 store=accumulate "
      "rows=indexed aligned=0 temperature=1 softcap=1 other=fp32 "
      "family=1 arch=cpu\n",
      {"--json"});
  EXPECT_EQ(result.code, 1) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["wanted"], 1);
  EXPECT_EQ(document["missing"], 1);
  const Json& kernel = document["kernels"][0];
  EXPECT_EQ(kernel["spec"],
            "family=1 op=kl_backward logits=bf16 other=fp32 vocab=1000 "
            "rows=indexed aligned=0 temperature=1 softcap=1 store=accumulate "
            "grad_a=1 grad_b=1");
  const auto again =
      check(kernel["spec"].get<std::string>() +
                " arch=cpu config=" + kernel["config"].get<std::string>(),
            {"--json"});
  EXPECT_EQ(Json::parse(again.out), document);
}

TEST_P(Check, ALineThatIsNoKernelIsNamed) {
  const struct {
    const char* line;
    const char* reason;
  } kCases[] = {
      {"op=logp dtype=bf16 arch=cpu", "vocab: missing"},
      {"dtype=bf16 vocab=7 arch=cpu", "op: missing"},
      {"op=logp vocab=7 arch=cpu", "logits: missing"},
      {"op=logp dtype=bf16 vocab=7", "arch: missing"},
      {"op=lopg dtype=bf16 vocab=7 arch=cpu", "did you mean 'logp'?"},
      {"op=logp dtype=bf16 vocab=0 arch=cpu", "vocab: '0'"},
      {"op=logp dtype=bf16 vocab=7 vocab=8 arch=cpu", "vocab: given twice"},
      {"op=logp dtype=bf16 vocb=7 arch=cpu", "did you mean 'vocab'?"},
      {"op=logp dtype=bf16 vocab=7 arch=cpu softcap=yes", "softcap: 'yes'"},
      {"op=logp dtype=bf16 vocab=7 arch=cpu family=2", "family: "},
      {"op=logp dtype=bf16 vocab=7 arch=cpu aligned", "'aligned' is not"},
      {"op=logp dtype=bf16 vocab=7 arch=sm90", "--arch: 'sm90'"},
      {"# nothing", "no kernel in it"},
  };
  for (const auto& each : kCases) {
    const auto result = check(each.line);
    EXPECT_EQ(result.code, 2) << each.line;
    EXPECT_EQ(result.out, "") << each.line;
    EXPECT_THAT(result.err, HasSubstr(each.reason));
    EXPECT_THAT(result.err, HasSubstr(folder_.path().string()));
  }
  EXPECT_EQ(run_logpjit(folder_.path(), {GetParam(), "--check", "/none"}).code,
            1);
}

/// What was measured on the architecture is what a run would use.
TEST_P(Check, MeasuredConfigurationsAreWantedToo) {
  std::filesystem::create_directories(folder_.path() / "cache");
  std::filesystem::permissions(folder_.path() / "cache",
                               std::filesystem::perms::owner_all);
  const auto line = [](const char* cc, const char* config) {
    return std::string(R"({"v":1,"spec":"family=1 op=logp logits=bf16 )"
                       R"(ids=int64 many_ids=0 vocab=1000 rows=strided )"
                       R"(aligned=1 temperature=0 softcap=0 n=64","device":)"
                       R"({"kind":"cuda","cc":")") +
           cc + R"(","sms":"132"},"config":")" + config +
           R"(","time_us":1,"spread":0,"measured_with":{}})" + "\n";
  };
  std::ofstream(folder_.path() / "cache" / "configs.jsonl")
      << line("9.0", "block=256,flight=1,min_blocks=3")
      << line("8.0", "block=128,flight=2,min_blocks=3");
  const auto result =
      check("op=logp dtype=bf16 vocab=1000 arch=sm_90a\n", {"--json"});
  EXPECT_EQ(result.code, 1) << result.err;
  const Json document = Json::parse(result.out);
  ASSERT_EQ(document["wanted"], 2) << result.out;
  EXPECT_EQ(document["kernels"][1]["config"],
            "block=256,flight=1,min_blocks=3");
}

TEST_F(Compile, AKernelOrAListMustBeNamed) {
  const auto result = run_logpjit(folder_.path(), {"compile"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("is required"));
}

TEST_F(Compile, NoCompilerThere) {
  const auto result = run_logpjit(folder_.path(),
                                  {"compile", "--op", "logp", "--dtype", "bf16",
                                   "--vocab", "1000", "--arch", "cpu"},
                                  {"LOGPJIT_HOST_COMPILER=/nonexistent/c++"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("/nonexistent/c++"));
}

}  // namespace
}  // namespace logpjit::cli
