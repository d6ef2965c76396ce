// logpjit compile, for this processor and, where there is NVRTC, for GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace logpjit::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

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
