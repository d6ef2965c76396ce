// How far computed values lie from the float64 ones.
#pragma once

#include <cstdint>
#include <functional>

#include "logpjit/dtype.hpp"

namespace logpjit::tuning {

/// Collected one value at a time. Infinities and NaN are compared by place
/// alone: each must be where the reference has it.
class Accuracy {
 public:
  /// `computed` as stored in `dtype`.
  void add(double computed, double right, DType dtype);
  void add(const Accuracy& others);

  std::int64_t count() const { return count_; }
  std::int64_t misplaced() const { return misplaced_; }
  double max_absolute() const { return max_absolute_; }
  /// Over values that are not 0.
  double max_relative() const { return max_relative_; }
  /// Distance from the unrounded right value, in units in the last place of it.
  double max_ulp() const { return max_ulp_; }
  /// Share of values that are the right one, rounded to nearest even.
  double correctly_rounded() const;

 private:
  std::int64_t count_ = 0;
  std::int64_t misplaced_ = 0;
  std::int64_t exact_ = 0;
  double max_absolute_ = 0;
  double max_relative_ = 0;
  double max_ulp_ = 0;
};

/// Of so many rows, which `add_row` is asked for side by side.
Accuracy accuracy_of_rows(
    std::int64_t rows,
    const std::function<void(std::int64_t row, Accuracy& accuracy)>& add_row);

}  // namespace logpjit::tuning
