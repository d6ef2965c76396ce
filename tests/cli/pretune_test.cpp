// logpjit pretune on the CPU device: what it leaves behind, not the speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tests/support/json_schema.hpp"

namespace logpjit::cli {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::vector<std::string> small_job(std::vector<std::string> more = {}) {
  std::vector<std::string> words{"pretune", "--device", "cpu",  "--ops",
                                 "logp",    "--vocab",  "1000", "--rows",
                                 "4",       "--budget", "60"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// A store of its own beside compiled kernels that are shared.
class Pretune : public ::testing::Test {
 protected:
  Pretune() : cache_(folder_.path() / "cache") {
    std::filesystem::create_directories(cache_);
    std::filesystem::permissions(cache_, std::filesystem::perms::owner_all);
  }
  ProgramResult run(std::vector<std::string> words) {
    return run_logpjit(cache_, std::move(words),
                       {"LOGPJIT_READ_ONLY_CACHES=" + shared_cache().string()});
  }

  const testing::TemporaryDirectory folder_;
  const std::filesystem::path cache_;
};

TEST_F(Pretune, LeavesAReportAPageAndAStore) {
  const auto file = folder_.path() / "r.json";
  const auto first = run(small_job({"--report", file.string()}));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("1 tuned"));
  EXPECT_THAT(testing::schema_faults(report_schema(), text_of(file)),
              IsEmpty());
  EXPECT_THAT(text_of(folder_.path() / "r.html"), HasSubstr("</html>"));
  const json report = json::parse(text_of(file));
  const json& entry = report["entries"][0];
  EXPECT_EQ(entry["status"], "tuned");
  EXPECT_GE(entry["candidates"].size(), 2u);
  EXPECT_GT(entry["floor"]["median_ms"].get<double>(), 0);

  // Once more: nothing is left to do, and all is said to be exact and cached.
  const auto again = run(small_job({"--json"}));
  ASSERT_EQ(again.code, 0) << again.err;
  const json second = json::parse(again.out);
  EXPECT_EQ(second["entries"][0]["status"], "stored");
  EXPECT_EQ(second["entries"][0]["config_source"], "exact");
  EXPECT_EQ(second["entries"][0]["config"], entry["config"]);
  EXPECT_TRUE(second["entries"][0]["image_cached"].get<bool>());
  EXPECT_THAT(testing::schema_faults(report_schema(), again.out), IsEmpty());

  // A damaged line is named and skipped, the rest is used.
  std::ofstream(cache_ / "configs.jsonl", std::ios::app) << "{damaged\n";
  const auto damaged = run(small_job());
  EXPECT_EQ(damaged.code, 0);
  EXPECT_THAT(damaged.err, HasSubstr("configs.jsonl:2"));
  EXPECT_THAT(damaged.out, HasSubstr("1 stored"));

  // A report that cannot be written does not undo the tuning.
  const auto unwritten = run(small_job({"--report", "/proc/no/such/r.json"}));
  EXPECT_EQ(unwritten.code, 1);
  EXPECT_THAT(unwritten.err, HasSubstr("/proc/no/such/r.json"));
  EXPECT_THAT(unwritten.err, HasSubstr("are kept"));
}

TEST_F(Pretune, InterruptedItLeavesAReportAndAStore) {
  const auto file = folder_.path() / "r.json";
  const std::vector<std::string> words{
      "pretune", "--device", "cpu",        "--ops", "logp",
      "--vocab", "1000",     "--rows",     "4,5,6", "--budget",
      "600",     "--report", file.string()};
  // While the second of three is tuned.
  const auto ended = interrupt_logpjit(
      cache_, words, "bf16 5 x 1000",
      {"LOGPJIT_READ_ONLY_CACHES=" + shared_cache().string()});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("stopped by the user"));
  EXPECT_THAT(ended.out, HasSubstr("1 tuned"));
  EXPECT_THAT(testing::schema_faults(report_schema(), text_of(file)),
              IsEmpty());
  const json report = json::parse(text_of(file));
  EXPECT_EQ(report["interrupted"], "stopped by the user");
  EXPECT_EQ(report["entries"][0]["status"], "tuned");
  EXPECT_EQ(report["entries"][2]["status"], "skipped");
  // The next run goes on.
  const auto again = run(words);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("warning")));
  EXPECT_EQ(json::parse(text_of(file))["entries"][0]["status"], "stored");
  EXPECT_EQ(json::parse(text_of(file))["entries"][2]["status"], "tuned");
}

TEST_F(Pretune, RecordedCalls) {
  const auto file = folder_.path() / "misses";
  std::ofstream(file) << "nonsense\n";
  const std::vector<std::string> words{"pretune", "--device", "cpu", "--from",
                                       file.string()};
  const auto bad = run(words);
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("misses:1"));
  std::ofstream(file)
      << "family=1 op=logp logits=bf16 ids=int64 many_ids=0 vocab=1000 "
         "rows=indexed aligned=1 temperature=0 softcap=0 n=4\n";
  const auto skipped = run(words);
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_THAT(skipped.out, HasSubstr("1 skipped"));
}

TEST_F(Pretune, ModelsAreListedWithWhereTheirNumbersAreFrom) {
  for (const char* command : {"pretune", "bench"}) {
    const auto list = run({command, "--list-models"});
    EXPECT_EQ(list.code, 0) << list.err;
    EXPECT_THAT(list.out, ContainsRegex("qwen2.5-7b +152064 +Qwen/Qwen2.5-7B"));
    EXPECT_THAT(list.out, Not(HasSubstr("\n\n")));
  }
}

TEST_F(Pretune, WrongUsage) {
  const auto model = run({"pretune", "--device", "cpu", "--model", "quen2.5"});
  EXPECT_EQ(model.code, 2);
  EXPECT_THAT(model.err, HasSubstr("did you mean 'qwen2.5'"));
  EXPECT_THAT(model.err, HasSubstr("--list-models"));
  EXPECT_EQ(run({"pretune", "--device", "cpu"}).code, 2);
  EXPECT_EQ(run(small_job({"--model", "qwen3", "--from", "x"})).code, 2);
  for (const char* budget : {"0", "-1"}) {
    const auto result = run(
        {"pretune", "--device", "cpu", "--vocab", "10", "--budget", budget});
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("--budget"));
  }
  const auto op =
      run({"pretune", "--device", "cpu", "--vocab", "10", "--ops", "logpp"});
  EXPECT_EQ(op.code, 2);
  EXPECT_THAT(op.err, HasSubstr("did you mean 'logp'"));
}

}  // namespace
}  // namespace logpjit::cli
