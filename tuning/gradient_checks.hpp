// Comparing a gradient on a device with what a case and the reference say.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/device.hpp"
#include "tuning/case_checks.hpp"
#include "tuning/cases.hpp"
#include "tuning/device_tensor.hpp"

namespace logpjit::tuning {

/// Reads single rows of a contiguous gradient, which may be large.
class GradientRows {
 public:
  GradientRows(runtime::Device& device, const DeviceTensor& gradient);

  std::int64_t rows() const { return rows_; }
  /// As stored.
  std::vector<std::byte> bytes(std::int64_t row) const;
  /// Widened.
  std::vector<double> values(std::int64_t row) const;

 private:
  runtime::Device& device_;
  const DeviceTensor& gradient_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
};

/// The case's gradient called `name`, all rows.
void check_named_gradient(const Case& one, const std::string& name,
                          const GradientRows& gradient, Findings& findings);

/// The case's gradient of everything it asks: whole, by row, by probe, rounded,
/// and the places where it is exactly zero.
void check_expected_gradient(const Case& one, const GradientRows& gradient,
                             Findings& findings);

/// Against the reference on the rows that `reference_rows` chooses: NaN and
/// zeros where it has them, else within one unit in the last place of the dtype
/// and 2e-6 of the row's upstream.
struct GradientReference {
  std::string name;  ///< for messages
  DType dtype = DType::kFp32;
  std::function<std::vector<double>(std::int64_t row)> row;
  /// Sum of the magnitudes of the row's upstream gradients.
  std::function<double(std::int64_t row)> scale;
};
void check_gradient_reference(const Case& one, const GradientRows& gradient,
                              const GradientReference& reference,
                              Findings& findings);

/// Equal bits on those rows.
void check_same_gradient(const Case& one, const GradientRows& gradient,
                         const GradientRows& other, std::string_view what,
                         Findings& findings);

}  // namespace logpjit::tuning
