// How far computed values lie from the float64 ones.
#include "tuning/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "runtime/parallel.hpp"
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

void Accuracy::add(const Accuracy& others) {
  count_ += others.count_;
  misplaced_ += others.misplaced_;
  exact_ += others.exact_;
  max_absolute_ = std::max(max_absolute_, others.max_absolute_);
  max_relative_ = std::max(max_relative_, others.max_relative_);
  max_ulp_ = std::max(max_ulp_, others.max_ulp_);
}

Accuracy accuracy_of_rows(
    std::int64_t rows,
    const std::function<void(std::int64_t row, Accuracy& accuracy)>& add_row) {
  std::vector<Accuracy> all(static_cast<std::size_t>(rows));
  runtime::parallel_for(
      all.size(), static_cast<int>(std::thread::hardware_concurrency()),
      [&](std::size_t i) { add_row(static_cast<std::int64_t>(i), all[i]); });
  Accuracy accuracy;
  for (const Accuracy& row : all) accuracy.add(row);
  return accuracy;
}

double Accuracy::correctly_rounded() const {
  return count_ == 0
             ? 1
             : static_cast<double>(exact_) / static_cast<double>(count_);
}

}  // namespace logpjit::tuning
