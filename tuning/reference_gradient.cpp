// Float64 gradients of one row's values with respect to its stored logits.
#include "tuning/reference_gradient.hpp"

#include <cmath>
#include <limits>
#include <map>

namespace logpjit::tuning {
namespace {

/// The valid ids' upstream gradients, summed by column and in all.
struct Targets {
  std::map<std::int64_t, double> by_column;
  double total = 0;
  bool any = false;
};

Targets gather(const RowUpstream& upstream, std::size_t columns) {
  Targets result;
  for (std::size_t k = 0; k < upstream.ids.size(); ++k) {
    const std::int64_t id = upstream.ids[k];
    if (id < 0 || id >= static_cast<std::int64_t>(columns)) continue;
    result.by_column[id] += upstream.logp[k];
    result.total += upstream.logp[k];
    result.any = result.any || upstream.logp[k] != 0;
  }
  return result;
}

/// g_k summed at this column, less its share of the softmax: S - p G. Near
/// p = 1 the difference is taken from 1 - p itself.
double target_term(double logp, double here, double total) {
  const double p = std::exp(logp);
  if (p == 0) return here;
  if (p < 0.5) return here - p * total;
  return (here - total) - total * std::expm1(logp);
}

/// What multiplies p_j besides -G.
double shared_term(double logp, double p, const RowStatistics& statistics,
                   const RowUpstream& upstream) {
  double factor = 0;
  if (upstream.entropy != 0) {
    factor -= upstream.entropy * (logp + statistics.entropy);
  }
  if (upstream.lse != 0) factor += upstream.lse;
  if (upstream.squares != 0) {
    factor += 2 * upstream.squares * (p - statistics.squares);
  }
  return factor;
}

}  // namespace

std::vector<double> row_gradient(const Row& row,
                                 const RowStatistics& statistics,
                                 const RowUpstream& upstream) {
  std::vector<double> gradient(row.z.size(), 0);
  const Targets targets = gather(upstream, row.z.size());
  const bool wanted = targets.any || upstream.entropy != 0 ||
                      upstream.lse != 0 || upstream.squares != 0;
  if (!wanted || statistics.state == RowState::kEmpty) return gradient;
  if (statistics.state == RowState::kNotANumber) {
    gradient.assign(row.z.size(), std::numeric_limits<double>::quiet_NaN());
    return gradient;
  }
  for (std::size_t j = 0; j < row.z.size(); ++j) {
    const double logp = (row.z[j] - statistics.maximum) - statistics.log_sum;
    const double p = std::exp(logp);
    if (p == 0) continue;
    const double factor = shared_term(logp, p, statistics, upstream);
    gradient[j] = p * (factor - targets.total) * row.slope[j];
  }
  for (const auto& [column, here] : targets.by_column) {
    const auto j = static_cast<std::size_t>(column);
    const double logp = (row.z[j] - statistics.maximum) - statistics.log_sum;
    const double p = std::exp(logp);
    const double shared =
        p == 0 ? 0 : p * shared_term(logp, p, statistics, upstream);
    gradient[j] =
        (target_term(logp, here, targets.total) + shared) * row.slope[j];
  }
  return gradient;
}

}  // namespace logpjit::tuning
