// logpjit bench on the CPU device: the report, not the speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tests/support/json_schema.hpp"

namespace logpjit::cli {
namespace {

using ::testing::HasSubstr;

TEST(Bench, ReportsTimesAndAccuracy) {
  const testing::TemporaryDirectory folder;
  const auto file = folder.path() / "bench.json";
  const auto result = run_logpjit(
      shared_cache(), {"bench", "--device", "cpu", "--vocab", "1000", "--rows",
                       "4", "--rounds", "2", "--json", file.string()});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("floor x"));
  std::ifstream in(file);
  const auto whole = nlohmann::json::parse(in);
  const auto& report = whole["entries"][0];
  EXPECT_EQ(whole["kind"], "bench");
  EXPECT_EQ(report["rows"], 4);
  EXPECT_EQ(report["bytes"], 8000);
  EXPECT_GT(report["operation"]["median_ms"].get<double>(), 0);
  EXPECT_LT(report["accuracy"]["max_absolute_error"].get<double>(), 1e-5);
  EXPECT_EQ(report["workspace_bytes"], 0);
  EXPECT_FALSE(report["config"].get<std::string>().empty());
  const auto again_cached =
      run_logpjit(shared_cache(), {"bench", "--device", "cpu", "--vocab",
                                   "1000", "--rows", "4", "--rounds", "2"});
  EXPECT_THAT(again_cached.out, HasSubstr("1 timed, 1 from the cache"));
  std::ifstream again(file);
  std::ostringstream text;
  text << again.rdbuf();
  EXPECT_THAT(testing::schema_faults(report_schema(), text.str()),
              ::testing::IsEmpty());
}

TEST(Bench, VariantsBesideThePlainCall) {
  const testing::TemporaryDirectory folder;
  const auto file = folder.path() / "bench.json";
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--ids-per-row", "8", "--op", "logp_backward"},
        {"--half-ignored", "--op", "logp"},
        {"--sequences", "2", "--op", "logp+entropy"},
        {"--sequences", "2", "--op", "logp_with_grad"},
        {"--sequences", "1", "--op", "logp_backward"},
        {"--sequences", "4", "--op", "kl_backward"},
        {"--fallback", "--op", "kl", "--against-vocab", "1001"}}) {
    SCOPED_TRACE(flags[0]);
    std::vector<std::string> words{
        "bench", "--device", "cpu", "--vocab", "1000",       "--rows",
        "4",     "--rounds", "2",   "--json",  file.string()};
    words.insert(words.end(), flags.begin(), flags.end());
    const auto result = run_logpjit(shared_cache(), words);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("of the plain call's time"));
    std::ifstream in(file);
    const auto report = nlohmann::json::parse(in)["entries"][0];
    EXPECT_GT(report["baseline"]["median_ms"].get<double>(), 0);
    EXPECT_EQ(report["workspace_bytes"], 0);
    EXPECT_LT(report["accuracy"]["max_absolute_error"].get<double>(), 2e-2);
  }
}

TEST(Bench, SequencesOfUnequalLength) {
  const auto result =
      run_logpjit(shared_cache(), {"bench", "--device", "cpu", "--vocab", "100",
                                   "--rows", "4", "--sequences", "3"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("sequences: 4 rows are not as many in"));
}

TEST(Bench, BadSizes) {
  for (const char* flag : {"--rows", "--vocab", "--rounds"}) {
    const auto result =
        run_logpjit(shared_cache(), {"bench", "--device", "cpu", flag, "-2"});
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_THAT(result.err,
                HasSubstr(std::string(flag) + ": must be 1 or more, got -2"));
  }
}

TEST(Bench, OperationsThatCannotBeTimed) {
  const auto result = run_logpjit(
      shared_cache(), {"bench", "--device", "cpu", "--op", "kl_with_grad"});
  EXPECT_EQ(result.code, 1);
}

}  // namespace
}  // namespace logpjit::cli
