// How long something took.
#pragma once

#include <chrono>

namespace logpjit::tuning {

inline double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - begin)
      .count();
}

/// Adds the milliseconds of a scope.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  ~Stopwatch() { sum_ += ms_since(begin_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_;
  const std::chrono::steady_clock::time_point begin_ =
      std::chrono::steady_clock::now();
};

}  // namespace logpjit::tuning
