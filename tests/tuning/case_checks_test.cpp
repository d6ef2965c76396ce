// The comparisons of the case runner: what they find, and what they let pass.
#include "tuning/case_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/tuning/case_samples.hpp"

namespace logpjit::tuning {
namespace {

using ::testing::HasSubstr;

constexpr const char* kThreeRows = R"("logits":{"gen":"const","value":0},
    "ids":[0,-100,1],"extra":{},"expected":{"policy":"ignored-id",
    "logp":[-1,0,"nan"],"tol":{"abs":0.01,"rel":0.1}})";

Output logp(std::vector<float> values) { return {"logp", 1, values}; }

std::string expected_findings(const Case& one, const Output& output) {
  Findings findings;
  check_expected(one, output, findings);
  return findings.empty() ? "" : findings.text();
}

TEST(CaseChecks, WithinToleranceOfTheExpected) {
  const Case one = sample_case("[3,2]", kThreeRows);
  EXPECT_EQ(expected_findings(one, logp({-1.1f, 0, NAN})), "");
  EXPECT_EQ(expected_findings(one, logp({-1.2f, 0, NAN})),
            "logp[0] is -1.2000000476837158, expected -1");
  EXPECT_THAT(expected_findings(one, logp({-1, 0.02f, NAN})),
              HasSubstr("logp[1]"));
  EXPECT_THAT(expected_findings(one, logp({-1, 0, 5})),
              HasSubstr("logp[2] is 5, expected nan"));
  EXPECT_THAT(expected_findings(one, logp({NAN, 0, NAN})),
              HasSubstr("logp[0] is nan"));
}

TEST(CaseChecks, ExpectedRowsAreLookedUp) {
  const Case one = sample_case("[3,2]", R"("logits":{"gen":"const","value":0},
      "ids":[0,0,1],"extra":{},"expected":{"rows":[2],"logp":[-3]})");
  EXPECT_EQ(expected_findings(one, logp({9, 9, -3})), "");
  EXPECT_EQ(expected_findings(one, logp({-3, -3, 9})),
            "logp[2] is 9, expected -3");
}

TEST(CaseChecks, PoisonThatIsLeft) {
  Findings findings;
  check_written(logp({NAN, 0, -1}), findings);
  EXPECT_TRUE(findings.empty());
  check_written(logp({0, std::bit_cast<float>(0xffffffffu), -1}), findings);
  EXPECT_EQ(findings.text(), "logp was not written at row 1");
}

TEST(CaseChecks, IgnoredIdsAreZeroBitForBit) {
  const Case one = sample_case("[3,2]", kThreeRows);
  Findings findings;
  check_ignored(one, logp({-1, 0, 5}), findings);
  EXPECT_TRUE(findings.empty());
  check_ignored(one, logp({-1, -0.0f, 5}), findings);
  EXPECT_EQ(findings.text(), "logp[1] is -0 where it must be exactly 0");
}

TEST(CaseChecks, MaskedRowsAreIgnored) {
  const Case one = sample_case("[2,2]", R"("logits":{"gen":"const","value":0},
      "ids":[0,1],"extra":{"row_mask":[1,0]},
      "expected":{"policy":"ignored-id"})");
  Findings findings;
  check_ignored(one, logp({-1, -1}), findings);
  EXPECT_THAT(findings.text(), HasSubstr("logp[1]"));
}

TEST(CaseChecks, BitsNotValues) {
  Findings findings;
  check_same_bits(logp({0}), logp({-0.0f}), "a and b", findings);
  EXPECT_EQ(findings.text(), "logp differs between a and b at row 0: 0 and -0");
  Findings none;
  check_same_bits(logp({NAN}), logp({NAN}), "a and b", none);
  EXPECT_TRUE(none.empty());
}

TEST(CaseChecks, ManyFindingsAreCounted) {
  Findings findings;
  for (int i = 0; i < 10; ++i) findings.add("x");
  EXPECT_EQ(findings.text(), "x; x; x; and 7 more");
}

TEST(CaseChecks, ReferenceRowsOfSmallCasesAreAll) {
  EXPECT_EQ(reference_rows(sample_case("[3,2]", kThreeRows)),
            (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(CaseChecks, ReferenceRowsOfLargeCasesAreSpread) {
  const Case one =
      sample_case("[100000,4096]", R"("logits":{"gen":"const","value":0},
      "ids":null,"extra":{},"expected":{"rows":[77],"entropy":[0]})");
  const auto rows = reference_rows(one);
  EXPECT_LE(rows.size(), 66u);
  EXPECT_THAT(rows, ::testing::Contains(77));
  EXPECT_THAT(rows, ::testing::Contains(0));
  EXPECT_THAT(rows, ::testing::Contains(99999));
}

TEST(CaseChecks, NoRows) {
  const Case one =
      sample_case("[0,2]", R"("logits":[],"ids":[],"extra":{},"expected":{})");
  EXPECT_TRUE(reference_rows(one).empty());
}

TEST(Tolerance, InfinitiesAndNaN) {
  const Tolerance loose{1, 1};
  EXPECT_TRUE(loose.near(INFINITY, INFINITY));
  EXPECT_FALSE(loose.near(INFINITY, -INFINITY));
  EXPECT_FALSE(loose.near(1e30, INFINITY));
  EXPECT_FALSE(loose.near(INFINITY, 1e30));
  EXPECT_TRUE(loose.near(NAN, NAN));
  EXPECT_FALSE(loose.near(0, NAN));
  EXPECT_FALSE(loose.near(NAN, 0));
  EXPECT_TRUE((Tolerance{}.near(-0.0, 0.0)));
}

}  // namespace
}  // namespace logpjit::tuning
