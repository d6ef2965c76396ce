// Wrong command lines: one clear line on stderr, exit code 2, nothing on
// stdout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace logpjit::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

void expect_usage_fault(const Words& words, const std::string& reason) {
  const auto result = run_logpjit(shared_cache(), words);
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("logpjit: error: "));
  EXPECT_THAT(result.err, HasSubstr(reason));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
      << result.err;
}

Words generate(const Words& changes) {
  Words words{"generate"};
  words.insert(words.end(), changes.begin(), changes.end());
  return words;
}

TEST(Usage, HelpAndVersion) {
  const auto help = run_logpjit(shared_cache(), {"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* name : {"devices", "generate", "compile", "run", "verify",
                           "bench", "cache", "scan"}) {
    EXPECT_THAT(help.out, HasSubstr(name));
    EXPECT_EQ(run_logpjit(shared_cache(), {name, "--help"}).code, 0) << name;
  }
  EXPECT_EQ(run_logpjit(shared_cache(), {"--version"}).code, 0);
}

TEST(Usage, NoOrUnknownCommand) {
  expect_usage_fault({}, "subcommand is required");
  expect_usage_fault({"verfy"},
                     "'verfy' is no command; did you mean 'verify'?");
  expect_usage_fault({"frobnicate"}, "'frobnicate' is no command (see");
  expect_usage_fault({"cache"}, "subcommand is required");
  expect_usage_fault({"cache", "lst"},
                     "'lst' is no command; did you mean 'ls'?");
}

TEST(Usage, UnknownFlag) {
  expect_usage_fault({"devices", "--jsn"}, "did you mean '--json'?");
}

TEST(Usage, MissingFlag) {
  expect_usage_fault({"generate", "--op", "logp"}, "--dtype is required");
  expect_usage_fault({"verify"}, "--device is required");
}

TEST(Usage, BadValues) {
  expect_usage_fault(
      generate({"--op", "lgop", "--dtype", "bf16", "--vocab", "8"}),
      "--op: 'lgop' is unknown; did you mean 'logp'?");
  expect_usage_fault(
      generate({"--op", "logp", "--dtype", "bf61", "--vocab", "8"}),
      "--dtype: 'bf61' is unknown; did you mean 'bf16'?");
  expect_usage_fault(
      generate({"--op", "logp", "--dtype", "int32", "--vocab", "8"}),
      "--dtype: 'int32' is unknown");
  expect_usage_fault(
      generate({"--op", "logp", "--dtype", "bf16", "--vocab", "0"}),
      "--vocab: must be 1 or more, got 0");
  expect_usage_fault(
      generate({"--op", "logp", "--dtype", "bf16", "--vocab", "-3"}),
      "--vocab: must be 1 or more, got -3");
  expect_usage_fault(
      generate({"--op", "logp", "--dtype", "bf16", "--vocab", "many"}),
      "--vocab");
  expect_usage_fault(generate({"--op", "logp", "--dtype", "bf16", "--vocab",
                               "99999999999999999999"}),
                     "--vocab");
  expect_usage_fault(generate({"--op", "logp", "--dtype", "bf16", "--vocab",
                               "8", "--config", "blok=128"}),
                     "--config: 'blok' is unknown; did you mean 'block'?");
  expect_usage_fault(generate({"--op", "logp", "--dtype", "bf16", "--vocab",
                               "8", "--config", "block"}),
                     "is not name=integer");
  expect_usage_fault(generate({"--op", "logp", "--dtype", "bf16", "--vocab",
                               "8", "--config", "block=100"}),
                     "block");
  expect_usage_fault(generate({"--op", "logp", "--dtype", "bf16", "--vocab",
                               "8", "--arch", "sm90"}),
                     "--arch: 'sm90' is unknown");
}

TEST(Usage, UnknownDevice) {
  expect_usage_fault({"verify", "--device", "tpu"}, "'tpu'");
  expect_usage_fault({"verify", "--device", "cuda:x"}, "'cuda:x'");
  expect_usage_fault({"bench", "--device", "cuda:-1"}, "'cuda:-1'");
}

TEST(Usage, ADeviceThatIsNotThereFails) {
  const auto result =
      run_logpjit(shared_cache(), {"verify", "--device", "cuda:63"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, StartsWith("logpjit: error: "));
}

TEST(Devices, OneDocument) {
  const auto result = run_logpjit(shared_cache(), {"devices", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto document = nlohmann::json::parse(result.out);
  EXPECT_EQ(document["devices"][0]["device"], "cpu");
  EXPECT_EQ(document["compilers"].size(), 2u);
}

TEST(Devices, ForPeople) {
  const auto result = run_logpjit(shared_cache(), {"devices"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("cpu"));
  EXPECT_THAT(result.out, HasSubstr("compiler for cuda: "));
}

TEST(Output, AFullStdoutIsAFailure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const auto result = run_logpjit(
      shared_cache(), generate({"--op", "logp", "--dtype", "bf16", "--vocab",
                                "8", "-o", "/dev/full/x"}));
  EXPECT_EQ(result.code, 1);
}

}  // namespace
}  // namespace logpjit::cli
