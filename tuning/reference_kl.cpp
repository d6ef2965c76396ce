// Float64 Kullback-Leibler divergence of two rows, and its gradients.
#include "tuning/reference_kl.hpp"

#include <cmath>
#include <limits>

#include "tuning/sum.hpp"

namespace logpjit::tuning {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double log_p(const Distribution& side, std::size_t j) {
  return (side.row.z[j] - side.statistics.maximum) - side.statistics.log_sum;
}

bool in_state(const Distribution& a, const Distribution& b, RowState state) {
  return a.statistics.state == state || b.statistics.state == state;
}

/// A has mass where B has none.
bool mismatched(const Distribution& a, const Distribution& b) {
  for (std::size_t j = 0; j < a.row.z.size(); ++j) {
    if (a.row.z[j] > -kInfinity && b.row.z[j] == -kInfinity) return true;
  }
  return false;
}

double gradient_a(const Distribution& a, const Distribution& b, std::size_t j,
                  double kl, double upstream) {
  if (a.row.z[j] == -kInfinity) return 0;
  if (kl == kInfinity) return kNaN;
  const double log_a = log_p(a, j);
  const double p = std::exp(log_a);
  if (p == 0) return 0;
  return upstream * p * (log_a - log_p(b, j) - kl) * a.row.slope[j];
}

double gradient_b(const Distribution& a, const Distribution& b, std::size_t j,
                  double upstream) {
  if (b.row.z[j] == -kInfinity) return 0;
  const double difference = std::exp(log_p(b, j)) - std::exp(log_p(a, j));
  return upstream * difference * b.row.slope[j];
}

}  // namespace

double row_kl(const Distribution& a, const Distribution& b) {
  if (a.statistics.state != RowState::kDefined ||
      b.statistics.state != RowState::kDefined) {
    return kNaN;
  }
  if (mismatched(a, b)) return kInfinity;
  Sum sum;
  for (std::size_t j = 0; j < a.row.z.size(); ++j) {
    const double log_a = log_p(a, j);
    const double p = std::exp(log_a);
    if (p != 0) sum.add(p * (log_a - log_p(b, j)));
  }
  return sum.value();
}

KlGradients row_kl_gradients(const Distribution& a, const Distribution& b,
                             double upstream) {
  const std::size_t columns = a.row.z.size();
  KlGradients result{std::vector<double>(columns, 0),
                     std::vector<double>(columns, 0)};
  if (upstream == 0) return result;
  if (in_state(a, b, RowState::kNotANumber)) {
    result.a.assign(columns, kNaN);
    result.b.assign(columns, kNaN);
    return result;
  }
  if (in_state(a, b, RowState::kEmpty)) return result;
  const double kl = row_kl(a, b);
  for (std::size_t j = 0; j < columns; ++j) {
    result.a[j] = gradient_a(a, b, j, kl, upstream);
    result.b[j] = gradient_b(a, b, j, upstream);
  }
  return result;
}

}  // namespace logpjit::tuning
