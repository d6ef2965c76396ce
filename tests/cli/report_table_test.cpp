// Reports on a terminal of 80 columns.
#include "cli/report_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/wrap.hpp"

namespace logpjit::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tuning::Report;
using tuning::ReportTiming;

TEST(Wrap, BreaksAfterSpacesAndCommas) {
  EXPECT_EQ(wrap("short", 2, 20), "  short\n");
  EXPECT_EQ(wrap("one two three", 0, 9), "one two\n  three\n");
  EXPECT_EQ(wrap("a=1,b=2,c=3", 1, 8), " a=1,\n   b=2,\n   c=3\n");
  EXPECT_EQ(wrap("unbroken", 0, 5), "unbro\n  ken\n");
  EXPECT_EQ(wrap("a bb cc", 0, 5, 3), "a bb\n   cc\n");
  EXPECT_EQ(wrap("", 3, 20), "   \n");
}

Report long_report() {
  const std::string config =
      "cluster=2,forward_threads=256,gradient_groups=1,gradient_threads=256,"
      "slots=27";
  const ReportTiming timing{
      .median_ms = 12345.678, .spread = 0.123, .samples_ms = {12345.678}};
  return {.kind = "bench",
          .device = {.name = "a processor with a rather long name",
                     .software = "and much to say about its software"},
          .compiler =
              "a compiler whose version and digest are longer still, "
              "6f7bb56c12f07102f1408f656b8e04fa",
          .seconds = 12,
          .entries = {{.op = "logp+entropy_backward",
                       .dtype = "bf16",
                       .vocab = 262208,
                       .rows = 131072,
                       .status = "timed",
                       .passes = "1 read, 1 write",
                       .bytes = 549755813888,
                       .workspace_bytes = 8388608,
                       .config = config,
                       .operation = timing,
                       .floor = timing,
                       .accuracy = tuning::ReportAccuracy{.values = 4},
                       .candidates = {{.config = config,
                                       .is_default = true,
                                       .status = "measured",
                                       .timing = timing},
                                      {.config = config + "0",
                                       .status = "compile_failed",
                                       .reason = std::string(200, 'x')}},
                       .peers = {{.name = "logp fwd+bwd: somebody, in place",
                                  .ms = 24691.356,
                                  .peak_gib = 9.5},
                                 {.name = "logp fwd+bwd: somebody else",
                                  .error = std::string(100, 'y')}}},
                      {.op = "kl",
                       .dtype = "fp32",
                       .vocab = 10,
                       .rows = 1,
                       .status = "failed",
                       .reason = "there was no memory for it"}}};
}

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(ReportTable, FitsEightyColumns) {
  expect_narrow(report_table(long_report()));
  expect_narrow(candidate_tables(long_report()));
}

TEST(ReportTable, SaysWhatABenchMustSay) {
  const std::string text = report_table(long_report());
  EXPECT_THAT(text,
              AllOf(HasSubstr("bf16, 262208 columns"),
                    HasSubstr("1 read, 1 write, 549755813888 bytes"),
                    HasSubstr("workspace 8388608 bytes"), HasSubstr("slots=27"),
                    HasSubstr(" 2.00 x\n"), HasSubstr("9.5 GiB")));
  EXPECT_THAT(text, HasSubstr("failed: there was no memory for it"));
  EXPECT_THAT(text, HasSubstr("2 entries, 1 failed, 1 timed"));
  Report tuned = long_report();
  tuned.kind = "pretune";
  EXPECT_THAT(report_table(tuned), Not(HasSubstr("workspace")));
}

TEST(ReportTable, CandidatesHaveTheirReasons) {
  const std::string text = candidate_tables(long_report());
  EXPECT_THAT(text, HasSubstr("\n*  measured"));
  EXPECT_THAT(text, HasSubstr("(default) cluster=2"));
  EXPECT_THAT(text, HasSubstr("xxxx"));
  EXPECT_THAT(text, HasSubstr("compile_failed"));
}

}  // namespace
}  // namespace logpjit::cli
