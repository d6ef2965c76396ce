// One row of logits in float64: its transform, its statistics, its values.
#pragma once

#include <cstdint>
#include <vector>

namespace logpjit::tuning {

/// z = cap(x) / temperature, cap(x) = softcap * tanh(x / softcap).
struct RowTransform {
  double softcap = 0;  ///< 0: none
  double temperature = 1;
  bool operator==(const RowTransform&) const = default;
};

/// The columns of a row that count, transformed.
struct Row {
  std::vector<double> z;
  std::vector<double> slope;  ///< dz/dx by column

  /// `logits` are the stored values, widened exactly.
  Row(std::vector<double> logits, const RowTransform& transform);
};

/// Whether a row has a distribution.
enum class RowState {
  kDefined,
  kEmpty,      ///< no column above -inf: values NaN, gradient exactly 0
  kNotANumber  ///< a NaN or +inf logit: values and gradient NaN
};

/// With m the true maximum and s = sum e^(z-m) over live columns.
struct RowStatistics {
  RowState state = RowState::kEmpty;
  double maximum = 0;        ///< m
  double log_sum = 0;        ///< L = log s
  double entropy = 0;        ///< H = L - sum e^(z-m) (z-m) / s
  double squares = 0;        ///< C = sum p^2
  std::int64_t argmax = -1;  ///< lowest column of the maximum
  std::int64_t live = 0;     ///< columns above -inf
  double lse() const { return maximum + log_sum; }
};

/// Every value is NaN unless the row is defined (`argmax` is -1, and `maximum`
/// is what the columns say).
RowStatistics row_statistics(const Row& row);

/// log p of one column: 0 for an id outside the row, NaN when undefined.
double row_logp(const Row& row, const RowStatistics& statistics,
                std::int64_t id);

}  // namespace logpjit::tuning
