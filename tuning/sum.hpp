// A sum of many float64 terms that keeps what each addition rounds away.
#pragma once

#include <cmath>

namespace logpjit::tuning {

/// Neumaier's compensated summation: the error does not grow with the number
/// of terms. For finite terms only.
class Sum {
 public:
  void add(double term) {
    const double total = total_ + term;
    lost_ += std::fabs(total_) >= std::fabs(term) ? (total_ - total) + term
                                                  : (term - total) + total_;
    total_ = total;
  }
  double value() const { return total_ + lost_; }

 private:
  double total_ = 0;
  double lost_ = 0;
};

}  // namespace logpjit::tuning
