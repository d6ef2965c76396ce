// KL by hand, by central differences, and the edge table.
#include "tuning/reference_kl.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace logpjit::tuning {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Distribution side(std::vector<double> logits, RowTransform transform = {}) {
  return Distribution(Row(std::move(logits), transform));
}

double kl(std::vector<double> a, std::vector<double> b) {
  return row_kl(side(std::move(a)), side(std::move(b)));
}

KlGradients gradients(std::vector<double> a, std::vector<double> b,
                      double upstream) {
  return row_kl_gradients(side(std::move(a)), side(std::move(b)), upstream);
}

std::vector<double> random_logits(unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, 2);
  std::vector<double> logits(19);
  for (double& value : logits) value = normal(engine);
  return logits;
}

TEST(ReferenceKl, ByHand) {
  // A = (1, 1) / 2, B = (1, 3) / 4.
  const double right = 0.5 * std::log(0.5 / 0.25) + 0.5 * std::log(0.5 / 0.75);
  EXPECT_NEAR(kl({0, 0}, {0, std::log(3)}), right, 1e-15);
  const auto gradient = gradients({0, 0}, {0, std::log(3)}, 2);
  EXPECT_DOUBLE_EQ(gradient.b[0], 2 * (0.25 - 0.5));
  EXPECT_NEAR(gradient.a[0], 2 * 0.5 * (std::log(2.0) - right), 1e-15);
}

TEST(ReferenceKl, EqualRowsAreExactlyZero) {
  const auto logits = random_logits(5);
  EXPECT_EQ(kl(logits, logits), 0);
  EXPECT_EQ(gradients(logits, logits, 3).a, std::vector<double>(19, 0));
  EXPECT_EQ(gradients(logits, logits, 3).b, std::vector<double>(19, 0));
}

TEST(ReferenceKl, SmallDivergenceKeepsItsDigits) {
  auto a = random_logits(6);
  auto b = a;
  for (std::size_t j = 0; j < b.size(); ++j) b[j] += j % 2 == 0 ? 1e-4 : 0;
  // Half the variance of the log-ratio, to first order.
  const auto p = side(a);
  double mean = 0;
  double square = 0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    const double w = std::exp(p.row.z[j] - p.statistics.lse());
    mean += w * (b[j] - a[j]);
    square += w * (b[j] - a[j]) * (b[j] - a[j]);
  }
  EXPECT_NEAR(kl(a, b) / ((square - mean * mean) / 2), 1, 1e-4);
}

TEST(ReferenceKl, GradientsMatchCentralDifferences) {
  for (const RowTransform& transform :
       {RowTransform{}, RowTransform{0, 2}, RowTransform{4, 0.8}}) {
    std::vector<double> logits[2] = {random_logits(1), random_logits(2)};
    const auto value = [&] {
      return 1.5 *
             row_kl(side(logits[0], transform), side(logits[1], transform));
    };
    const auto gradient = row_kl_gradients(side(logits[0], transform),
                                           side(logits[1], transform), 1.5);
    for (int s = 0; s < 2; ++s) {
      for (std::size_t j = 0; j < 19; ++j) {
        const double here = logits[s][j];
        logits[s][j] = here + 1e-5;
        const double above = value();
        logits[s][j] = here - 1e-5;
        const double below = value();
        logits[s][j] = here;
        const double right = s == 0 ? gradient.a[j] : gradient.b[j];
        EXPECT_NEAR(right, (above - below) / 2e-5, 2e-9) << s << " " << j;
      }
    }
  }
}

TEST(ReferenceKl, SupportIsDecidedOnLogits) {
  EXPECT_EQ(kl({0, -200}, {0, -kInf}), kInf);
  EXPECT_EQ(kl({0, -1e30}, {0, -kInf}), kInf);
  EXPECT_EQ(kl({0, -kInf}, {0, -kInf}), 0);
  EXPECT_DOUBLE_EQ(kl({0, -kInf}, {0, 0}), std::log(2));
}

TEST(ReferenceKl, MismatchLeavesTheOtherGradientFinite) {
  const auto gradient = gradients({0, 0, -kInf}, {0, -kInf, 0}, 1);
  EXPECT_TRUE(std::isnan(gradient.a[0]));
  EXPECT_TRUE(std::isnan(gradient.a[1]));
  EXPECT_EQ(gradient.a[2], 0);
  EXPECT_EQ(gradient.b, (std::vector<double>{0, 0, 0.5}));
}

TEST(ReferenceKl, ZeroUpstreamIsZeroWhateverTheRows) {
  for (const std::vector<double>& a :
       {std::vector<double>{0, 0}, {kNaN, 0}, {-kInf, -kInf}, {kInf, 0}}) {
    EXPECT_EQ(gradients(a, {0, -kInf}, 0).a, std::vector<double>(2, 0));
    EXPECT_EQ(gradients({0, -kInf}, a, 0).b, std::vector<double>(2, 0));
  }
}

TEST(ReferenceKl, UndefinedSides) {
  EXPECT_TRUE(std::isnan(kl({-kInf, -kInf}, {0, 1})));
  EXPECT_TRUE(std::isnan(kl({0, 1}, {-kInf, -kInf})));
  EXPECT_TRUE(std::isnan(kl({0, kNaN}, {0, -kInf})));
  const auto empty = gradients({0, 1}, {-kInf, -kInf}, 1);
  EXPECT_EQ(empty.a, std::vector<double>(2, 0));
  EXPECT_EQ(empty.b, std::vector<double>(2, 0));
  for (double value : gradients({0, 1}, {kNaN, 1}, 1).a) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(ReferenceKl, OneColumn) { EXPECT_EQ(kl({5}, {-9}), 0); }

}  // namespace
}  // namespace logpjit::tuning
