// Comparing what a device computed with what a case expects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tuning/cases.hpp"

namespace logpjit::tuning {

/// What is wrong with one run, in words.
class Findings {
 public:
  void add(std::string finding);
  bool empty() const { return count_ == 0; }
  /// The first few, and how many more there are; one line.
  std::string text() const;

 private:
  std::int64_t count_ = 0;
  std::vector<std::string> first_;
};

/// An fp32 output of `width` values per row, by name.
struct Output {
  std::string_view name;
  std::int64_t width = 1;
  std::vector<float> values;
};

/// The case's own numbers, within its tolerance.
void check_expected(const Case& one, const Output& output, Findings& findings);

/// No value still holds the poison that outputs start with.
void check_written(const Output& output, Findings& findings);

/// Under the ignored-id policy, values of ids outside the vocabulary and of
/// masked rows are zeros, bit for bit.
void check_ignored(const Case& one, const Output& output, Findings& findings);

/// Equal bits; `what` says what differed between the runs ("bf16 and fp32").
void check_same_bits(const Output& one, const Output& other,
                     std::string_view what, Findings& findings);

/// The rows on which a case is compared with the float64 reference: all, or
/// where that would take long, the expected ones and some more, evenly spread.
std::vector<std::int64_t> reference_rows(const Case& one);

/// `value` of `name` at `row` (and id `k`) against the reference's `right`.
void check_near(std::string_view name, std::int64_t row, std::int64_t k,
                double value, double right, const Tolerance& tolerance,
                Findings& findings);

}  // namespace logpjit::tuning
