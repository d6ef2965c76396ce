// logpjit pretune --archs: a cache filled without the GPU it is for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace logpjit::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

class PretuneArchs : public ::testing::Test {
 protected:
  ProgramResult run(Words words, const Words& environment = {}) {
    words.insert(words.begin(), "pretune");
    return run_logpjit(folder_.path(), std::move(words), environment);
  }
  /// A kernel that any host compiler makes in a second or two.
  static Words small_job(const std::string& op, Words more = {}) {
    Words words{"--archs", "cpu", "--ops", op, "--vocab", "1000"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static bool have_nvrtc() {
    const auto result = run_logpjit(shared_cache(), {"devices", "--json"});
    return Json::parse(result.out)["compilers"][1]["why_not"] == "";
  }

  const testing::TemporaryDirectory folder_;
};

TEST_F(PretuneArchs, CompilesWhatARunWouldUse) {
  const auto first = run(small_job("logp"));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out,
              HasSubstr("1 kernels, 1 compiled, 0 from the cache, 0 failed"));
  EXPECT_THAT(first.err, HasSubstr("[1/1] logp bf16 1000 for cpu"));

  const auto again = run(small_job("logp", {"--json"}));
  ASSERT_EQ(again.code, 0) << again.err;
  const Json document = Json::parse(again.out);
  EXPECT_EQ(document["cached"], 1);
  EXPECT_EQ(document["compiled"], 0);
  EXPECT_EQ(document["interrupted"], false);
  const Json& kernel = document["kernels"][0];
  EXPECT_EQ(kernel["arch"], "cpu");
  EXPECT_EQ(kernel["cache"], "hit");

  // The list that it prints is complete, and needs no compiler any more.
  const auto list = folder_.path() / "list";
  std::ofstream(list) << kernel["spec"].get<std::string>()
                      << " arch=cpu config="
                      << kernel["config"].get<std::string>() << "\n";
  EXPECT_EQ(run({"--check", list}).code, 0);
  EXPECT_EQ(run(small_job("logp", {"--require-cached"})).code, 0);
}

TEST_F(PretuneArchs, ARowThatDoesNotFitOnChipTakesTwoKernels) {
  const auto result = run(small_job("logp_with_grad", {"--json"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const Json document = Json::parse(result.out);
  ASSERT_EQ(document["wanted"], 2) << result.out;
  EXPECT_THAT(document["kernels"][0]["spec"].get<std::string>(),
              HasSubstr("op=logp "));
  EXPECT_THAT(document["kernels"][1]["spec"].get<std::string>(),
              HasSubstr("op=logp_backward "));
}

TEST_F(PretuneArchs, CandidatesAreAllThatTuningCouldTry) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  Words words{"--archs", "sm_90a,sm_120a", "--ops", "logp",
              "--vocab", "1000",           "--json"};
  const auto few = run(words);
  ASSERT_EQ(few.code, 0) << few.err;
  EXPECT_EQ(Json::parse(few.out)["wanted"], 2);
  words.push_back("--candidates");
  const auto all = run(words);
  ASSERT_EQ(all.code, 0) << all.err;
  const Json document = Json::parse(all.out);
  EXPECT_GT(document["wanted"], 10);
  EXPECT_EQ(document["cached"], 2);
  EXPECT_EQ(document["compiled"].get<int>() + 2, document["wanted"]);
}

TEST_F(PretuneArchs, WhatCannotBeBuiltIsCountedAndNamed) {
  const auto result = run(small_job("logp,entropy"),
                          {"LOGPJIT_HOST_COMPILER=/nonexistent/c++"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("2 kernels, 0 compiled, 0 from the cache, "
                                    "2 failed"));
  EXPECT_THAT(result.err, HasSubstr("logp for cpu, block="));
  EXPECT_THAT(result.err, HasSubstr("/nonexistent/c++"));
  const auto document = run(small_job("logp", {"--json"}),
                            {"LOGPJIT_HOST_COMPILER=/nonexistent/c++"});
  EXPECT_EQ(document.code, 1);
  EXPECT_THAT(
      Json::parse(document.out)["kernels"][0]["failure"].get<std::string>(),
      HasSubstr("/nonexistent/c++"));
}

TEST_F(PretuneArchs, RecordedCalls) {
  const auto file = folder_.path() / "misses";
  std::ofstream(file)
      << "family=1 op=logp logits=bf16 ids=int64 many_ids=0 vocab=1000 "
         "rows=indexed aligned=1 temperature=0 softcap=0 n=4\n";
  const auto result = run({"--archs", "cpu", "--from", file, "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(Json::parse(result.out)["kernels"][0]["spec"].get<std::string>(),
              HasSubstr("rows=indexed"));
}

TEST_F(PretuneArchs, WrongUsage) {
  struct Row {
    Words words;
    const char* message;
  };
  const Row rows[] = {
      {{"--archs", "cpu"}, "--model"},
      {{"--archs", ",", "--vocab", "9"}, "names no architecture"},
      {{"--archs", "sm90a", "--vocab", "9"}, "did you mean 'sm_90a'?"},
      {{"--archs", "cpu", "--device", "cpu", "--vocab", "9"}, "excludes"},
      {{"--archs", "cpu", "--vocab", "9", "--report", "r"}, "excludes"},
      {{"--candidates", "--device", "cpu", "--vocab", "9"}, "requires"},
      {{"--check", "list", "--model", "qwen3"}, "excludes"},
      {{"--vocab", "9"}, "--device is required"}};
  for (const Row& row : rows) {
    const auto result = run(row.words);
    EXPECT_EQ(result.code, 2) << row.message;
    EXPECT_EQ(result.out, "") << row.message;
    EXPECT_THAT(result.err, HasSubstr(row.message));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace logpjit::cli
