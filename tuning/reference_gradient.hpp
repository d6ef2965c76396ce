// Float64 gradients of one row's values with respect to its stored logits.
#pragma once

#include <cstdint>
#include <vector>

#include "tuning/reference_row.hpp"

namespace logpjit::tuning {

/// Upstream gradients of one row's values. Absent terms are 0.
struct RowUpstream {
  std::vector<std::int64_t> ids;  ///< as in the tensor, invalid ones included
  std::vector<double> logp;       ///< one per id
  double entropy = 0;
  double lse = 0;
  double squares = 0;
};

/// The sum of every term's gradient, by superposition:
///   r_j = sum_{k: t_k = j} g_k
///       + p_j (-G - g_H (log p_j + H) + g_Z + 2 g_2 (p_j - C)),
/// times dz/dx. Unrounded. Invalid ids are left out by selection, so a NaN
/// upstream on one is harmless. A row whose coefficients are all 0, or that has
/// no live column, is exactly 0; a row with a NaN or +inf logit is NaN.
std::vector<double> row_gradient(const Row& row,
                                 const RowStatistics& statistics,
                                 const RowUpstream& upstream);

}  // namespace logpjit::tuning
