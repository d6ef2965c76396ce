// Forward and gradient in one launch, for log-probabilities alone: the bits of
// two launches, for every shape that the kernel treats in its own way.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "runtime/launch_table.hpp"
#include "tests/conformance/harness.hpp"
#include "tuning/numeric.hpp"

namespace logpjit::tests {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// A row's length and where rows lie. The CPU device, whose compiler is slow,
/// takes some of them.
struct Shape {
  std::string_view why;
  bool on_cpu;
  DType dtype;
  std::int64_t vocab;
  std::int64_t padding = 0;  ///< columns of a row that do not count
  Placement placement = {};
};

constexpr Shape kShapes[]{
    {"one tile", false, DType::kBf16, 8192},
    {"one segment, its last tile cut", true, DType::kBf16, 32000},
    {"a last tile of few groups", false, DType::kBf16, 50304},
    {"segments and ragged columns", true, DType::kFp32, 41003},
    {"rows that start anywhere", true, DType::kBf16, 50257},
    {"rows that start anywhere, shared by two blocks", false, DType::kFp16,
     151937},
    {"columns that do not count", true, DType::kBf16, 75960, 8},
    {"a row shared by two blocks", false, DType::kBf16, 128256},
    {"a long row's shortest", false, DType::kBf16, 204808},
    {"a long row, ragged", true, DType::kFp16, 221195, 5},
    {"a long row of whole tiles", false, DType::kBf16, 262144},
    {"a long row off its lines", true, DType::kBf16, 262208, 0, {8, 262216}},
};

constexpr std::int64_t kOwnRows = 7;

class FusedRows : public OnDevice {
 protected:
  struct Bits {
    std::vector<std::uint32_t> logp, max, sum;
    std::vector<double> gradient;
    bool operator==(const Bits&) const = default;
  };

  /// Logits with what rows must cope with: masked columns, a row of nothing
  /// else, and a NaN.
  static HostMatrix make_logits(const Shape& shape, std::int64_t rows) {
    HostMatrix matrix =
        random_matrix(shape.dtype, rows, shape.vocab + shape.padding, 2, 11);
    for (std::int64_t column = 5; column < shape.vocab; column += 97) {
      matrix.at(1, column) = -kInf;
    }
    for (std::int64_t column = 0; column < shape.vocab; ++column) {
      matrix.at(2, column) = -kInf;
    }
    matrix.at(3, shape.vocab - 1) = std::numeric_limits<double>::quiet_NaN();
    // Then the same rows again: other ids make other results of them.
    const auto own = static_cast<std::ptrdiff_t>(matrix.values.size());
    matrix.rows = rows;
    matrix.values.resize(
        static_cast<std::size_t>(rows * (shape.vocab + shape.padding)));
    for (auto at = matrix.values.begin() + own; at != matrix.values.end();) {
      const auto count = std::min(own, matrix.values.end() - at);
      at = std::copy_n(matrix.values.begin(), count, at);
    }
    return matrix;
  }

  /// Ids in every part of a row, its last column among them, and ignored ones.
  static std::vector<std::int64_t> make_ids(const Shape& shape,
                                            std::int64_t rows) {
    std::vector<std::int64_t> ids = random_ids(rows, shape.vocab, 12);
    ids[0] = shape.vocab - 1;
    ids[1] = 0;
    ids[4] = -100;
    return ids;
  }

  Bits run(const Shape& shape, const HostMatrix& matrix, bool fused,
           bool in_place = false) {
    const auto logits = send(device(), matrix, shape.placement);
    const auto ids = send_ids(device(), make_ids(shape, matrix.rows), 1);
    std::vector<float> up = random_floats(matrix.rows, 13);
    up[5] = 0.0f;
    const auto upstream = send(device(), up);
    const Values out = poisoned_values(device(), matrix.rows, 1);
    HostMatrix poison = matrix;
    std::fill(poison.values.begin(), poison.values.end(), 77.0);
    const auto other = send(device(), poison, shape.placement);
    const auto& gradient = in_place ? logits : other;
    const Gradient to{.tensor = gradient.view, .in_place = in_place};
    const RowForward values{.logits = logits.view,
                            .ids = ids.view,
                            .vocab = shape.vocab,
                            .logp = out.logp.view,
                            .max = out.max.view,
                            .sum = out.sum.view};
    if (fused) {
      forward_with_grad(runtime(), {.values = values,
                                    .upstream = {.logp = upstream.view},
                                    .gradient = to});
    } else {
      forward(runtime(), values);
      backward(runtime(), {.logits = logits.view,
                           .ids = ids.view,
                           .vocab = shape.vocab,
                           .max = out.max.view,
                           .sum = out.sum.view,
                           .upstream = {.logp = upstream.view},
                           .gradient = to});
    }
    return {bits(device(), out.logp), bits(device(), out.max),
            bits(device(), out.sum), fetch(device(), gradient)};
  }
};
LOGPJIT_ON_DEVICES(FusedRows);

/// The same bits; NaN counts as equal to itself.
void expect_same(std::vector<double> found, std::vector<double> right) {
  const auto settle = [](double& value) {
    if (value != value) value = 1e300;
  };
  std::ranges::for_each(found, settle);
  std::ranges::for_each(right, settle);
  EXPECT_TRUE(found == right);
}

TEST_P(FusedRows, HaveTheBitsOfTwoLaunches) {
  for (const Shape& shape : kShapes) {
    if (on_cpu() && !shape.on_cpu) continue;
    SCOPED_TRACE(shape.why);
    KernelSpec spec;
    spec.pass = Pass::kWithGrad;
    spec.logits = shape.dtype;
    spec.vocab = shape.vocab;
    spec.aligned = shape.vocab % 8 == 0 || shape.padding != 0;
    if (!runtime::fits_on_chip(spec, device().info())) {
      GTEST_SKIP() << "this GPU has no clusters";
    }
    // Several rows for every block.
    const std::int64_t rows =
        on_cpu() ? kOwnRows : device().info().multiprocessors + 10;
    const HostMatrix matrix = make_logits(shape, rows);
    const Bits right = run(shape, matrix, /*fused=*/false);
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(in_place);
      const Bits found = run(shape, matrix, /*fused=*/true, in_place);
      EXPECT_EQ(found.logp, right.logp);
      EXPECT_EQ(found.max, right.max);
      EXPECT_EQ(found.sum, right.sum);
      expect_same(found.gradient, right.gradient);
    }
  }
}

TEST_P(FusedRows, LongOnesAreServedByWarpsThatDoBothPasses) {
  KernelSpec spec;
  spec.pass = Pass::kWithGrad;
  for (const auto& [vocab, both] : {std::tuple{151936, false},
                                    {201088, false},
                                    {204808, true},
                                    {262144, true},
                                    {262208, true}}) {
    spec.vocab = vocab;
    if (!runtime::fits_on_chip(spec, device().info())) {
      GTEST_SKIP() << "this GPU has no clusters";
    }
    const LaunchConfig config =
        runtime::default_choices(spec, device().info())[0].config;
    EXPECT_EQ(config.at("gradient_groups") == 0, both) << config.text();
  }
}

}  // namespace
}  // namespace logpjit::tests
