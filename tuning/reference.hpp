// The float64 reference over whole tensors: what every kernel is checked
// against.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "logpjit/tensor.hpp"
#include "tuning/reference_gradient.hpp"
#include "tuning/reference_kl.hpp"
#include "tuning/reference_row.hpp"

namespace logpjit::tuning {

/// One logits tensor and what is done to it. Rows are read one at a time, so
/// nothing of the tensor's size is held in float64.
struct Problem {
  std::int64_t rows = 0;
  /// Fills `values` with the columns of `row` that count, widened exactly.
  std::function<void(std::int64_t row, std::vector<double>& values)> logits;

  std::int64_t ids_per_row = 0;  ///< 0: no ids
  std::function<std::int64_t(std::int64_t row, std::int64_t k)> id;
  std::vector<double> temperature;     ///< none, one, or one per row
  double softcap = 0;                  ///< 0: none
  std::vector<std::uint8_t> row_mask;  ///< 0 = ignored; empty: none is

  bool ignored(std::int64_t row) const {
    return !row_mask.empty() && row_mask[static_cast<std::size_t>(row)] == 0;
  }
  Distribution distribution(std::int64_t row) const;
};

/// Reads rows of a host tensor [N, V] or [B, S, V] with any strides; `vocab`
/// columns of each. The memory must outlive the Problem.
Problem problem_of(const TensorView& logits, std::int64_t vocab);

/// The ids of a host tensor with any strides, in order.
std::vector<std::int64_t> read_ids(const TensorView& ids);
/// Gives `problem` these ids, `ids_per_row` for each of its rows, in order.
void set_ids(Problem& problem, std::vector<std::int64_t> ids,
             std::int64_t ids_per_row);

/// The values of one row. An ignored row's are all 0.
struct RowValues {
  std::vector<double> logp;  ///< one per id
  RowStatistics statistics;
  double entropy = 0;
  double lse = 0;
  double squares = 0;
};
RowValues reference_values(const Problem& problem, std::int64_t row);

/// Upstream gradients over whole tensors; empty = absent.
struct Upstream {
  std::vector<double> logp;  ///< rows * ids_per_row
  std::vector<double> entropy;
  std::vector<double> lse;
  std::vector<double> squares;
};

/// Gradient of sum(upstream * value) with respect to one row of stored logits,
/// unrounded; an ignored row's is exactly 0.
std::vector<double> reference_gradient(const Problem& problem,
                                       const Upstream& upstream,
                                       std::int64_t row);

}  // namespace logpjit::tuning
