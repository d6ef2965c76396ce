// Every gradient against central differences, and the edge table.
#include "tuning/reference_gradient.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace logpjit::tuning {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double objective(const std::vector<double>& logits,
                 const RowTransform& transform, const RowUpstream& up) {
  const Row row(logits, transform);
  const auto statistics = row_statistics(row);
  double total = up.entropy * statistics.entropy + up.lse * statistics.lse() +
                 up.squares * statistics.squares;
  for (std::size_t k = 0; k < up.ids.size(); ++k) {
    total += up.logp[k] * row_logp(row, statistics, up.ids[k]);
  }
  return total;
}

std::vector<double> gradient_of(const std::vector<double>& logits,
                                const RowUpstream& up,
                                const RowTransform& transform = {}) {
  const Row row(logits, transform);
  return row_gradient(row, row_statistics(row), up);
}

std::vector<double> random_logits(int columns, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, 3);
  std::vector<double> logits;
  for (int j = 0; j < columns; ++j) logits.push_back(normal(engine));
  return logits;
}

struct Term {
  const char* name;
  RowUpstream upstream;
};

class EachTerm : public testing::TestWithParam<Term> {};

TEST_P(EachTerm, MatchesCentralDifferences) {
  const RowUpstream& up = GetParam().upstream;
  for (const RowTransform& transform :
       {RowTransform{}, RowTransform{0, 0.7}, RowTransform{5, 1.3}}) {
    auto logits = random_logits(23, 11);
    const auto gradient = gradient_of(logits, up, transform);
    for (std::size_t j = 0; j < logits.size(); ++j) {
      const double here = logits[j];
      logits[j] = here + 1e-5;
      const double above = objective(logits, transform, up);
      logits[j] = here - 1e-5;
      const double below = objective(logits, transform, up);
      logits[j] = here;
      EXPECT_NEAR(gradient[j], (above - below) / 2e-5, 2e-9) << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    ReferenceGradient, EachTerm,
    testing::Values(Term{"logp", {{4}, {1.5}}},
                    Term{"many", {{4, 4, -100, 22}, {1, -0.5, 9, 2}}},
                    Term{"entropy", {{}, {}, 0.8}},
                    Term{"lse", {{}, {}, 0, -1.2}},
                    Term{"squares", {{}, {}, 0, 0, 2.5}},
                    Term{"all", {{0, 7}, {1, -2}, 0.3, 0.4, -0.6}}),
    [](const auto& case_info) { return case_info.param.name; });

TEST(ReferenceGradient, ByHand) {
  // p = (1, 3) / 4.
  const auto gradient = gradient_of({0, std::log(3)}, {{0}, {2}});
  EXPECT_DOUBLE_EQ(gradient[0], 2 * 0.75);
  EXPECT_DOUBLE_EQ(gradient[1], -2 * 0.75);
}

TEST(ReferenceGradient, NearCertaintyKeepsItsDigits) {
  const auto gradient = gradient_of({0, -40}, {{0}, {1}});
  const double rest = std::exp(-40) / (1 + std::exp(-40));
  EXPECT_NEAR(gradient[0] / rest, 1, 1e-13);
  EXPECT_NEAR(gradient[1] / -rest, 1, 1e-13);
}

TEST(ReferenceGradient, InvalidIdsAreSelectedAway) {
  const std::vector<double> logits{1, 2, 3};
  for (double g : {5.0, kNaN, kInf}) {
    const auto mixed = gradient_of(logits, {{1, -100, 3}, {1, g, g}});
    EXPECT_EQ(mixed, gradient_of(logits, {{1}, {1}}));
    const auto none = gradient_of(logits, {{-100, 3}, {g, g}});
    EXPECT_EQ(none, std::vector<double>(3, 0));
  }
}

TEST(ReferenceGradient, ZeroUpstreamIsZeroWhateverTheRow) {
  for (const std::vector<double>& logits :
       {std::vector<double>{1, 2}, {kNaN, 2}, {kInf, 2}, {-kInf, -kInf}}) {
    EXPECT_EQ(gradient_of(logits, {{0}, {0}}), std::vector<double>(2, 0));
    EXPECT_EQ(gradient_of(logits, {{5}, {kNaN}}), std::vector<double>(2, 0));
  }
}

TEST(ReferenceGradient, NoLiveColumnIsZeroWhateverTheUpstream) {
  EXPECT_EQ(gradient_of({-kInf, -kInf}, {{0}, {3}, 1, 1, 1}),
            std::vector<double>(2, 0));
}

TEST(ReferenceGradient, NotANumberIsNeverHidden) {
  for (double bad : {kNaN, kInf}) {
    for (double value : gradient_of({0, bad, -kInf}, {{0}, {1}})) {
      EXPECT_TRUE(std::isnan(value));
    }
  }
}

TEST(ReferenceGradient, MaskedTargetKeepsItsUpstream) {
  const auto gradient = gradient_of({0, -kInf, 0, -kInf}, {{1}, {2}});
  EXPECT_EQ(gradient, (std::vector<double>{-1, 2, -1, 0}));
}

TEST(ReferenceGradient, MaskedColumnsAreExactlyZero) {
  const auto gradient = gradient_of({0, -kInf, 1, -kInf}, {{0}, {2}, 1, 1, 1});
  EXPECT_EQ(gradient[1], 0);
  EXPECT_EQ(gradient[3], 0);
}

TEST(ReferenceGradient, OneColumnIsExactlyZero) {
  EXPECT_EQ(gradient_of({3}, {{0}, {2}, 1, 0, 1}), std::vector<double>{0});
}

TEST(ReferenceGradient, LogpAloneSumsToZero) {
  double sum = 0;
  for (double value : gradient_of(random_logits(501, 3), {{77}, {1}})) {
    sum += value;
  }
  EXPECT_NEAR(sum, 0, 1e-15);
}

}  // namespace
}  // namespace logpjit::tuning
