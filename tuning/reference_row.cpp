// One row of logits in float64: its transform, its statistics, its values.
#include "tuning/reference_row.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "tuning/sum.hpp"

namespace logpjit::tuning {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Infinities pass: a masked column stays masked, +inf stays visible.
void soft_cap(Row& row, const RowTransform& transform) {
  for (std::size_t j = 0; j < row.z.size(); ++j) {
    if (std::isinf(row.z[j])) continue;
    const double ratio = std::tanh(row.z[j] / transform.softcap);
    row.z[j] = transform.softcap * ratio / transform.temperature;
    row.slope[j] = (1 - ratio) * (1 + ratio) / transform.temperature;
  }
}

/// Maximum, its first column, the count of live columns and the state.
RowStatistics survey(const Row& row) {
  RowStatistics result{RowState::kEmpty, -kInfinity, kNaN, kNaN, kNaN, -1, 0};
  for (std::size_t j = 0; j < row.z.size(); ++j) {
    const double z = row.z[j];
    if (std::isnan(z)) {
      result.maximum = kNaN;
      result.state = RowState::kNotANumber;
      result.argmax = -1;
      return result;
    }
    if (z > -kInfinity) ++result.live;
    if (z > result.maximum) {
      result.maximum = z;
      result.argmax = static_cast<std::int64_t>(j);
    }
  }
  if (result.maximum == kInfinity) {
    result.state = RowState::kNotANumber;
    result.argmax = -1;
  } else if (result.live > 0) {
    result.state = RowState::kDefined;
  }
  return result;
}

}  // namespace

Row::Row(std::vector<double> logits, const RowTransform& transform)
    : z(std::move(logits)), slope(z.size(), 1 / transform.temperature) {
  if (transform.softcap != 0) {
    soft_cap(*this, transform);
  } else if (transform.temperature != 1) {
    for (double& value : z) value /= transform.temperature;
  }
}

RowStatistics row_statistics(const Row& row) {
  RowStatistics result = survey(row);
  if (result.state != RowState::kDefined) return result;
  // The maximum's own terms (1, 0, 1) are added last, so that a row that puts
  // nearly all its mass on one column loses nothing of the rest.
  Sum rest;
  Sum weighted;
  Sum squared;
  for (std::size_t j = 0; j < row.z.size(); ++j) {
    if (static_cast<std::int64_t>(j) == result.argmax) continue;
    const double shifted = row.z[j] - result.maximum;
    const double term = std::exp(shifted);
    if (term == 0) continue;
    rest.add(term);
    weighted.add(term * shifted);
    squared.add(term * term);
  }
  const double sum = 1 + rest.value();
  result.log_sum = std::log1p(rest.value());
  result.entropy = result.log_sum - weighted.value() / sum;
  result.squares = (1 + squared.value()) / (sum * sum);
  return result;
}

double row_logp(const Row& row, const RowStatistics& statistics,
                std::int64_t id) {
  if (id < 0 || id >= static_cast<std::int64_t>(row.z.size())) return 0;
  if (statistics.state != RowState::kDefined) return kNaN;
  return (row.z[static_cast<std::size_t>(id)] - statistics.maximum) -
         statistics.log_sum;
}

}  // namespace logpjit::tuning
