// The comparisons of gradients: what they find, and what they let pass.
#include "tuning/gradient_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "tests/support/device/null_device.hpp"
#include "tests/tuning/case_samples.hpp"

namespace logpjit::tuning {
namespace {

using ::testing::HasSubstr;

class GradientChecks : public ::testing::Test {
 protected:
  DeviceTensor gradient(const std::vector<float>& values, std::int64_t rows) {
    const std::int64_t shape[] = {
        rows, static_cast<std::int64_t>(values.size()) / rows};
    return upload(device_, DType::kFp32, shape,
                  std::as_bytes(std::span(values)));
  }
  std::string expected(const std::string& json,
                       const std::vector<float>& values) {
    const Case one = sample_case("[2,2]", R"("logits":{"gen":"const","value":0},
        "ids":[0,0],"extra":{"grad_out":[1,1]},"expected":)" +
                                              json);
    const DeviceTensor tensor = gradient(values, 2);
    Findings findings;
    check_expected_gradient(one, GradientRows(device_, tensor), findings);
    return findings.empty() ? "" : findings.text();
  }

  testing::NullDevice device_;
};

TEST_F(GradientChecks, WholeRowsAndProbes) {
  EXPECT_EQ(expected(R"({"dlogits":[1,2,3,4]})", {1, 2, 3, 4}), "");
  EXPECT_EQ(expected(R"({"dlogits":[1,2,3,4]})", {1, 2, 3, 5}),
            "dlogits[1, 1] is 5, expected 4");
  EXPECT_EQ(expected(R"({"dlogits_rows":{"1":[3,4]}})", {9, 9, 3, 4}), "");
  EXPECT_THAT(expected(R"({"dlogits_rows":{"1":[3,4]}})", {9, 9, 4, 4}),
              HasSubstr("dlogits[1, 0]"));
  EXPECT_EQ(expected(R"({"dlogits_probe":[[0,1,2]]})", {9, 2, 9, 9}), "");
  EXPECT_THAT(expected(R"({"dlogits_probe":[[0,1,2]]})", {9, 9, 9, 9}),
              HasSubstr("dlogits[0, 1] is 9"));
}

TEST_F(GradientChecks, ZeroBitForBit) {
  EXPECT_EQ(expected(R"({"exact_zero":[[0,1]]})", {9, 0, 9, 9}), "");
  EXPECT_THAT(expected(R"({"exact_zero":[[0,1]]})", {9, -0.0f, 9, 9}),
              HasSubstr("[0, 1] is not exactly 0"));
  EXPECT_EQ(expected(R"({"exact_zero_rows":[1]})", {9, 9, 0, 0}), "");
  EXPECT_THAT(expected(R"({"exact_zero_rows":[1]})", {0, 0, 0, 1e-30f}),
              HasSubstr("row 1 is not exactly 0"));
}

TEST_F(GradientChecks, AgainstTheReference) {
  const Case one = sample_case("[1,2]", R"("logits":{"gen":"const","value":0},
      "ids":[0],"extra":{"grad_out":[1]},"expected":{})");
  const GradientReference reference{"g", DType::kFp32,
                                    [](std::int64_t) {
                                      return std::vector<double>{0.5, NAN};
                                    },
                                    [](std::int64_t) { return 1.0; }};
  const auto found = [&](const std::vector<float>& values) {
    const DeviceTensor tensor = gradient(values, 1);
    Findings findings;
    check_gradient_reference(one, GradientRows(device_, tensor), reference,
                             findings);
    return findings.empty() ? "" : findings.text();
  };
  EXPECT_EQ(found({0.500001f, NAN}), "");
  EXPECT_THAT(found({0.50001f, NAN}), HasSubstr("g[0, 0]"));
  EXPECT_THAT(found({0.5f, 0}), HasSubstr("g[0, 1] is 0, float64 says nan"));
}

TEST_F(GradientChecks, EqualBits) {
  const Case one = sample_case("[1,2]", R"("logits":{"gen":"const","value":0},
      "ids":[0],"extra":{"grad_out":[1]},"expected":{})");
  const DeviceTensor a = gradient({0, 1}, 1);
  const DeviceTensor b = gradient({-0.0f, 1}, 1);
  Findings findings;
  check_same_gradient(one, GradientRows(device_, a), GradientRows(device_, b),
                      "two runs", findings);
  EXPECT_EQ(findings.text(), "the gradient of row 0 differs between two runs");
}

}  // namespace
}  // namespace logpjit::tuning
