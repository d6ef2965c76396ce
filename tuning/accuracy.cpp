// How far computed values lie from the float64 ones.
#include "tuning/accuracy.hpp"

#include <algorithm>
#include <cmath>

#include "tuning/numeric.hpp"

namespace logpjit::tuning {

void Accuracy::add(double computed, double right, DType dtype) {
  ++count_;
  const double nearest = rounded(right, dtype);
  if (!std::isfinite(computed) || !std::isfinite(nearest)) {
    const bool same =
        computed == nearest || (std::isnan(computed) && std::isnan(nearest));
    if (same) ++exact_;
    if (!same) ++misplaced_;
    return;
  }
  if (computed == nearest) ++exact_;
  const double error = std::fabs(computed - right);
  max_absolute_ = std::max(max_absolute_, error);
  if (right != 0) {
    max_relative_ = std::max(max_relative_, error / std::fabs(right));
  }
  max_ulp_ = std::max(max_ulp_, error / spacing(right, dtype));
}

double Accuracy::correctly_rounded() const {
  return count_ == 0
             ? 1
             : static_cast<double>(exact_) / static_cast<double>(count_);
}

}  // namespace logpjit::tuning
