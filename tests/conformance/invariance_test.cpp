// A row's bits depend on its values alone: not on launch configuration, other
// rows, place, alignment, strides, dtype, or one launch against two.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "logpjit/error.hpp"
#include "tests/conformance/harness.hpp"
#include "tuning/numeric.hpp"

namespace logpjit::tests {
namespace {

class Invariance : public OnDevice {
 protected:
  /// Bits of every value and of the gradient of logp + entropy.
  struct Bits {
    std::vector<std::uint32_t> logp, entropy, max, sum;
    std::vector<double> gradient;
    bool operator==(const Bits&) const = default;
  };

  struct Inputs {
    std::vector<std::int64_t> ids;
    std::vector<float> up_logp, up_entropy;
  };

  static Inputs make_inputs(std::int64_t rows, std::int64_t vocab) {
    return {random_ids(rows, vocab, 2), random_floats(rows, 3),
            random_floats(rows, 4)};
  }

  Bits run(const HostMatrix& matrix, const Inputs& inputs,
           Placement placement = {}, bool fused = false) {
    const auto logits = send(device(), matrix, placement);
    const auto ids = send_ids(device(), inputs.ids, 1);
    const auto up_logp = send(device(), inputs.up_logp);
    const auto up_entropy = send(device(), inputs.up_entropy);
    const Values out = poisoned_values(device(), matrix.rows, 1);
    HostMatrix poison = matrix;
    std::fill(poison.values.begin(), poison.values.end(), 77.0);
    const auto gradient = send(device(), poison, placement);
    const RowForward values{.logits = logits.view,
                            .ids = ids.view,
                            .logp = out.logp.view,
                            .entropy = out.entropy.view,
                            .max = out.max.view,
                            .sum = out.sum.view};
    const Upstream upstream{.logp = up_logp.view, .entropy = up_entropy.view};
    if (fused) {
      forward_with_grad(runtime(), {.values = values,
                                    .upstream = upstream,
                                    .gradient = {.tensor = gradient.view}});
    } else {
      forward(runtime(), values);
      backward(runtime(), {.logits = logits.view,
                           .ids = ids.view,
                           .max = out.max.view,
                           .sum = out.sum.view,
                           .entropy = out.entropy.view,
                           .upstream = upstream,
                           .gradient = {.tensor = gradient.view}});
    }
    return {bits(device(), out.logp), bits(device(), out.entropy),
            bits(device(), out.max), bits(device(), out.sum),
            fetch(device(), gradient)};
  }
};
LOGPJIT_ON_DEVICES_AND_FALLBACK(Invariance);

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kVocab = 50264;  // 7 tiles, 4 segments, a cut last tile

/// Specialised kernels alone: the fallback's have one configuration.
class LaunchConfigurations : public Invariance {};
LOGPJIT_ON_DEVICES(LaunchConfigurations);

TEST_P(LaunchConfigurations, OfTheForward) {
  const HostMatrix matrix = random_matrix(DType::kBf16, kRows, kVocab, 2, 1);
  const Inputs inputs = make_inputs(kRows, kVocab);
  const Bits want = run(matrix, inputs);
  KernelSpec spec;
  spec.terms = Terms::kLogp | Terms::kEntropy;
  spec.vocab = kVocab;
  const auto logits = send(device(), matrix);
  const auto ids = send_ids(device(), inputs.ids, 1);
  for (const LaunchConfig& config :
       {LaunchConfig{{"block", 128}, {"min_blocks", 1}, {"flight", 4}},
        LaunchConfig{{"block", 256}, {"min_blocks", 1}, {"flight", 1}},
        LaunchConfig{{"block", 512}, {"min_blocks", 1}, {"flight", 4}},
        LaunchConfig{{"block", 1024}, {"min_blocks", 1}, {"flight", 1}},
        LaunchConfig{{"split", 16}, {"parts", 4}},
        LaunchConfig{{"split", 8}, {"parts", 2}},
        LaunchConfig{{"split", 2}, {"parts", 1}}}) {
    SCOPED_TRACE(config.text());
    const Kernel kernel = runtime().kernel(spec, config);
    const Values out = poisoned_values(device(), kRows, 1);
    launch(kernel, {.logits = logits.view,
                    .ids = ids.view,
                    .logp = out.logp.view,
                    .entropy = out.entropy.view,
                    .max = out.max.view,
                    .sum = out.sum.view});
    EXPECT_EQ(bits(device(), out.logp), want.logp);
    EXPECT_EQ(bits(device(), out.entropy), want.entropy);
    EXPECT_EQ(bits(device(), out.max), want.max);
    EXPECT_EQ(bits(device(), out.sum), want.sum);
  }
}

TEST_P(Invariance, OneLaunchOrTwo) {
  for (const std::int64_t vocab : {kVocab, std::int64_t{20001}}) {
    for (const DType dtype : {DType::kBf16, DType::kFp32}) {
      SCOPED_TRACE(std::to_string(vocab) + std::string(name(dtype)));
      const HostMatrix matrix = random_matrix(dtype, kRows, vocab, 2, 1);
      const Inputs inputs = make_inputs(kRows, vocab);
      EXPECT_TRUE(run(matrix, inputs) ==
                  run(matrix, inputs, {}, /*fused=*/true));
    }
  }
}

TEST_P(Invariance, OtherRowsAndPlace) {
  const HostMatrix matrix = random_matrix(DType::kBf16, kRows, kVocab, 2, 1);
  const Inputs inputs = make_inputs(kRows, kVocab);
  const Bits all = run(matrix, inputs);
  for (const std::int64_t row : {std::int64_t{0}, kRows - 1}) {
    HostMatrix one{DType::kBf16,
                   1,
                   kVocab,
                   {matrix.values.begin() + row * kVocab,
                    matrix.values.begin() + (row + 1) * kVocab}};
    const auto at = static_cast<std::size_t>(row);
    const Bits alone = run(
        one, {{inputs.ids[at]}, {inputs.up_logp[at]}, {inputs.up_entropy[at]}});
    EXPECT_EQ(alone.logp[0], all.logp[at]);
    EXPECT_EQ(alone.entropy[0], all.entropy[at]);
    EXPECT_TRUE(std::equal(alone.gradient.begin(), alone.gradient.end(),
                           all.gradient.begin() + row * kVocab));
  }
}

TEST_P(Invariance, NumberOfRows) {
  const HostMatrix row = random_matrix(DType::kBf16, 1, kVocab, 2, 1);
  const Inputs of_row = make_inputs(1, kVocab);
  const Bits want = run(row, of_row);
  std::vector<std::int64_t> counts{2, 7};
  if (!on_cpu()) counts.insert(counts.end(), {64, 128, 1000});
  for (const std::int64_t count : counts) {
    SCOPED_TRACE(count);
    HostMatrix matrix = random_matrix(DType::kBf16, count, kVocab, 2, 7);
    std::copy(row.values.begin(), row.values.end(),
              matrix.values.end() - kVocab);
    Inputs inputs = make_inputs(count, kVocab);
    inputs.ids.back() = of_row.ids[0];
    inputs.up_logp.back() = of_row.up_logp[0];
    inputs.up_entropy.back() = of_row.up_entropy[0];
    const Bits got = run(matrix, inputs, {}, /*fused=*/count % 2 == 1);
    EXPECT_EQ(got.logp.back(), want.logp[0]);
    EXPECT_EQ(got.entropy.back(), want.entropy[0]);
    EXPECT_EQ(got.max.back(), want.max[0]);
    EXPECT_EQ(got.sum.back(), want.sum[0]);
    EXPECT_TRUE(std::equal(want.gradient.begin(), want.gradient.end(),
                           got.gradient.end() - kVocab));
  }
}

TEST_P(Invariance, AlignmentAndStride) {
  const HostMatrix matrix = random_matrix(DType::kBf16, kRows, kVocab, 2, 1);
  const Inputs inputs = make_inputs(kRows, kVocab);
  const Bits want = run(matrix, inputs);
  for (const Placement placement :
       {Placement{.offset = 8, .row_stride = kVocab + 8},
        Placement{.offset = 1, .row_stride = kVocab},
        Placement{.offset = 3, .row_stride = kVocab + 5}}) {
    SCOPED_TRACE(placement.offset);
    EXPECT_TRUE(run(matrix, inputs, placement) == want);
    EXPECT_TRUE(run(matrix, inputs, placement, /*fused=*/true) == want);
  }
}

TEST_P(Invariance, DtypeOfEqualValues) {
  const HostMatrix narrow = random_matrix(DType::kBf16, kRows, kVocab, 2, 1);
  HostMatrix wide = narrow;
  wide.dtype = DType::kFp32;
  const Inputs inputs = make_inputs(kRows, kVocab);
  const Bits of_narrow = run(narrow, inputs);
  Bits of_wide = run(wide, inputs);
  for (double& value : of_wide.gradient) {
    value = tuning::rounded(value, DType::kBf16);
  }
  EXPECT_TRUE(of_narrow == of_wide);
}

TEST_P(Invariance, RepeatedRuns) {
  const HostMatrix matrix = random_matrix(DType::kBf16, kRows, kVocab, 2, 1);
  const Inputs inputs = make_inputs(kRows, kVocab);
  const Bits want = run(matrix, inputs, {}, true);
  for (int i = 0; i < (on_cpu() ? 2 : 50); ++i) {
    ASSERT_TRUE(run(matrix, inputs, {}, i % 2 == 0) == want) << i;
  }
}

}  // namespace
}  // namespace logpjit::tests
