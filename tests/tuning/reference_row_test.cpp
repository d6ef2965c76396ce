// Row statistics against values worked out by hand.
#include "tuning/reference_row.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace logpjit::tuning {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

RowStatistics statistics_of(std::vector<double> logits,
                            RowTransform transform = {}) {
  return row_statistics(Row(std::move(logits), transform));
}

double logp_of(std::vector<double> logits, std::int64_t id) {
  const Row row(std::move(logits), {});
  return row_logp(row, row_statistics(row), id);
}

TEST(ReferenceRow, ASoftcapPassesInfinities) {
  const Row masked({-kInf, 1, kInf}, {2, 4});
  EXPECT_EQ(masked.z[0], -kInf);
  EXPECT_DOUBLE_EQ(masked.z[1], 2 * std::tanh(0.5) / 4);
  EXPECT_EQ(masked.z[2], kInf);
  EXPECT_DOUBLE_EQ(masked.slope[0], 0.25);
  EXPECT_EQ(statistics_of({-kInf, 1}, {2, 1}).live, 1);
}

TEST(ReferenceRow, ThreeLogitsByHand) {
  // p = (1, 2, 5) / 8.
  const auto row = statistics_of({0, std::log(2), std::log(5)});
  EXPECT_EQ(row.state, RowState::kDefined);
  EXPECT_DOUBLE_EQ(row.maximum, std::log(5));
  EXPECT_DOUBLE_EQ(row.log_sum, std::log(8.0 / 5));
  EXPECT_DOUBLE_EQ(row.lse(), std::log(8));
  const double entropy =
      -(1.0 / 8 * std::log(1.0 / 8) + 2.0 / 8 * std::log(2.0 / 8) +
        5.0 / 8 * std::log(5.0 / 8));
  EXPECT_DOUBLE_EQ(row.entropy, entropy);
  EXPECT_DOUBLE_EQ(row.squares, 30.0 / 64);
  EXPECT_EQ(row.argmax, 2);
  EXPECT_EQ(row.live, 3);
}

TEST(ReferenceRow, EqualLogits) {
  const auto row = statistics_of(std::vector<double>(1000, -65504));
  EXPECT_DOUBLE_EQ(row.entropy, std::log(1000));
  EXPECT_DOUBLE_EQ(row.log_sum, std::log(1000));
  EXPECT_DOUBLE_EQ(row.squares, 1e-3);
  EXPECT_EQ(row.argmax, 0);
}

TEST(ReferenceRow, OneColumnIsCertain) {
  for (const auto& row :
       {statistics_of({7}), statistics_of({-kInf, -1e30, -kInf})}) {
    EXPECT_EQ(row.log_sum, 0);
    EXPECT_EQ(row.entropy, 0);
    EXPECT_EQ(row.squares, 1);
    EXPECT_EQ(row.live, 1);
  }
}

TEST(ReferenceRow, TiesGoToTheLowestColumn) {
  EXPECT_EQ(statistics_of({1, 3, 3, -1, 3}).argmax, 1);
}

TEST(ReferenceRow, MaskedColumnsAreAsIfAbsent) {
  const auto masked = statistics_of({-kInf, 0, -kInf, 1, 2});
  const auto dropped = statistics_of({0, 1, 2});
  EXPECT_EQ(masked.log_sum, dropped.log_sum);
  EXPECT_EQ(masked.entropy, dropped.entropy);
  EXPECT_EQ(masked.squares, dropped.squares);
  EXPECT_EQ(masked.live, 3);
}

TEST(ReferenceRow, UndefinedRows) {
  EXPECT_EQ(statistics_of({}).state, RowState::kEmpty);
  EXPECT_EQ(statistics_of({-kInf, -kInf}).state, RowState::kEmpty);
  EXPECT_EQ(statistics_of({-kInf, -kInf}).maximum, -kInf);
  EXPECT_EQ(statistics_of({0, kNaN}).state, RowState::kNotANumber);
  EXPECT_EQ(statistics_of({0, kInf}).state, RowState::kNotANumber);
  EXPECT_EQ(statistics_of({kInf, kNaN, 0}).state, RowState::kNotANumber);
  for (const auto& row : {statistics_of({-kInf}), statistics_of({kNaN}),
                          statistics_of({kInf, 0})}) {
    EXPECT_TRUE(std::isnan(row.log_sum));
    EXPECT_TRUE(std::isnan(row.entropy));
    EXPECT_TRUE(std::isnan(row.squares));
    EXPECT_EQ(row.argmax, -1);
  }
}

TEST(ReferenceRow, LargeOffsetsChangeNothing) {
  const auto low = statistics_of({0, 8, 16, -8});
  const auto high = statistics_of({1e8, 1e8 + 8, 1e8 + 16, 1e8 - 8});
  EXPECT_EQ(low.log_sum, high.log_sum);
  EXPECT_EQ(low.entropy, high.entropy);
}

TEST(ReferenceRow, NearCertaintyKeepsItsDigits) {
  const auto row = statistics_of({0, -40});
  EXPECT_DOUBLE_EQ(row.log_sum, std::log1p(std::exp(-40)));
  EXPECT_NEAR(row.entropy / (41 * std::exp(-40)), 1, 1e-12);
}

TEST(ReferenceRow, LogpOfIdsInsideAndOutside) {
  EXPECT_DOUBLE_EQ(logp_of({0, std::log(3)}, 0), std::log(0.25));
  EXPECT_EQ(logp_of({0, 1}, -1), 0);
  EXPECT_EQ(logp_of({0, 1}, 2), 0);
  EXPECT_EQ(logp_of({0, 1}, -100), 0);
  EXPECT_EQ(logp_of({0, -kInf}, 1), -kInf);
  EXPECT_TRUE(std::isnan(logp_of({-kInf, -kInf}, 1)));
  EXPECT_EQ(logp_of({-kInf, -kInf}, 2), 0);
  EXPECT_TRUE(std::isnan(logp_of({0, kNaN}, 0)));
}

TEST(ReferenceRow, TemperatureDivides) {
  const auto warm = statistics_of({0, 3, 1}, {0, 2});
  const auto same = statistics_of({0, 1.5, 0.5});
  EXPECT_EQ(warm.entropy, same.entropy);
  EXPECT_EQ(warm.maximum, 1.5);
}

TEST(ReferenceRow, SoftcapComesBeforeTemperature) {
  const Row row({3, -1, 200}, {2, 0.5});
  EXPECT_DOUBLE_EQ(row.z[0], 2 * std::tanh(1.5) / 0.5);
  EXPECT_DOUBLE_EQ(row.z[2], 4);
  EXPECT_DOUBLE_EQ(row.slope[1], (1 - std::pow(std::tanh(-0.5), 2)) / 0.5);
}

}  // namespace
}  // namespace logpjit::tuning
