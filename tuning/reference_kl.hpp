// Float64 Kullback-Leibler divergence of two rows, and its gradients.
#pragma once

#include <utility>
#include <vector>

#include "tuning/reference_row.hpp"

namespace logpjit::tuning {

/// A row with its statistics.
struct Distribution {
  Row row;
  RowStatistics statistics;

  explicit Distribution(Row logits)
      : row(std::move(logits)), statistics(row_statistics(row)) {}
};

/// KL(A || B) of rows of one length: NaN if either row is undefined, else +inf
/// if a live column of A is -inf in B (decided on logits), else
/// sum p_A (log p_A - log p_B). Exactly 0 for equal rows.
double row_kl(const Distribution& a, const Distribution& b);

/// Gradients with respect to the stored logits of A and of B; `upstream` 0 or
/// a side without live columns gives exact zeros on both sides, a NaN or +inf
/// logit on either gives NaN on both.
///   A: g p_A (log p_A - log p_B - KL); where KL is +inf, NaN on A's live
///      columns
///   B: g (p_B - p_A); 0 where B is -inf
struct KlGradients {
  std::vector<double> a;
  std::vector<double> b;
};
KlGradients row_kl_gradients(const Distribution& a, const Distribution& b,
                             double upstream);

}  // namespace logpjit::tuning
