// Comparing a gradient on a device with what a case and the reference say.
#include "tuning/gradient_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuning/numeric.hpp"

namespace logpjit::tuning {
namespace {

constexpr double kScaleTolerance = 2e-6;

void check_cell(const std::string& name, std::int64_t row, std::size_t column,
                double value, double right, const Tolerance& tolerance,
                Findings& findings) {
  if (tolerance.near(value, right)) return;
  findings.add(fmt::format("{}[{}, {}] is {}, expected {}", name, row, column,
                           value, right));
}

void check_row(const std::string& name, std::int64_t row,
               const std::vector<double>& values, const double* right,
               const Tolerance& tolerance, Findings& findings) {
  for (std::size_t j = 0; j < values.size(); ++j) {
    check_cell(name, row, j, values[j], right[j], tolerance, findings);
  }
}

void check_all_rows(const std::string& name, const GradientRows& gradient,
                    const std::vector<double>& right,
                    const Tolerance& tolerance, Findings& findings) {
  for (std::int64_t row = 0; row < gradient.rows(); ++row) {
    const auto values = gradient.values(row);
    check_row(name, row, values,
              right.data() + static_cast<std::size_t>(row) * values.size(),
              tolerance, findings);
  }
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

void check_zeros(const Case& one, const GradientRows& gradient,
                 Findings& findings) {
  for (const auto& [row, column] : one.expected.exact_zero) {
    const auto bytes = gradient.bytes(row);
    const std::size_t size =
        bytes.size() / static_cast<std::size_t>(one.columns());
    const auto at = static_cast<std::size_t>(column) * size;
    if (all_zero(std::span(bytes).subspan(at, size))) continue;
    findings.add(
        fmt::format("the gradient at [{}, {}] is not exactly 0", row, column));
  }
  for (const std::int64_t row : one.expected.exact_zero_rows) {
    if (all_zero(gradient.bytes(row))) continue;
    findings.add(fmt::format("the gradient of row {} is not exactly 0", row));
  }
}

}  // namespace

GradientRows::GradientRows(runtime::Device& device,
                           const DeviceTensor& gradient)
    : device_(device),
      gradient_(gradient),
      rows_(gradient.view.leading(1)),
      columns_(gradient.view
                   .shape[static_cast<std::size_t>(gradient.view.rank - 1)]) {
  device_.synchronize();
}

std::vector<std::byte> GradientRows::bytes(std::int64_t row) const {
  const std::size_t row_bytes =
      static_cast<std::size_t>(columns_) * size_of(gradient_.view.dtype);
  std::vector<std::byte> result(row_bytes);
  if (result.empty()) return result;
  device_.copy_out(result.data(),
                   static_cast<const std::byte*>(gradient_.view.data) +
                       static_cast<std::size_t>(row) * row_bytes,
                   row_bytes);
  return result;
}

std::vector<double> GradientRows::values(std::int64_t row) const {
  std::vector<double> result;
  widen_row(bytes(row).data(), gradient_.view.dtype, columns_, 1, result);
  return result;
}

void check_named_gradient(const Case& one, const std::string& name,
                          const GradientRows& gradient, Findings& findings) {
  const auto found = one.expected.gradients.find(name);
  if (found == one.expected.gradients.end()) return;
  check_all_rows(name, gradient, found->second, one.expected.gradient_tolerance,
                 findings);
}

void check_expected_gradient(const Case& one, const GradientRows& gradient,
                             Findings& findings) {
  const CaseExpected& expected = one.expected;
  check_named_gradient(one, "dlogits", gradient, findings);
  if (one.dtype == DType::kBf16) {
    const auto exact = expected.gradients.find("dlogits_bf16_rne");
    if (exact != expected.gradients.end()) {
      check_all_rows(exact->first, gradient, exact->second, {}, findings);
    }
  }
  for (const auto& [row, right] : expected.gradient_rows) {
    check_row("dlogits", row, gradient.values(row), right.data(),
              expected.gradient_tolerance, findings);
  }
  for (const Probe& probe : expected.gradient_probes) {
    const auto column = static_cast<std::size_t>(probe.column);
    check_cell("dlogits", probe.row, column, gradient.values(probe.row)[column],
               probe.value, expected.gradient_tolerance, findings);
  }
  check_zeros(one, gradient, findings);
}

void check_gradient_reference(const Case& one, const GradientRows& gradient,
                              const GradientReference& reference,
                              Findings& findings) {
  for (const std::int64_t row : reference_rows(one)) {
    const auto values = gradient.values(row);
    const auto right = reference.row(row);
    const double slack = kScaleTolerance * reference.scale(row);
    for (std::size_t j = 0; j < values.size(); ++j) {
      const double ulp =
          std::isfinite(right[j]) ? spacing(right[j], reference.dtype) : 0;
      const Tolerance tolerance{std::isfinite(slack) ? slack + ulp : ulp, 0};
      if (tolerance.near(values[j], right[j])) continue;
      findings.add(fmt::format("{}[{}, {}] is {}, float64 says {}",
                               reference.name, row, j, values[j], right[j]));
    }
  }
}

void check_same_gradient(const Case& one, const GradientRows& gradient,
                         const GradientRows& other, std::string_view what,
                         Findings& findings) {
  for (const std::int64_t row : reference_rows(one)) {
    if (gradient.bytes(row) == other.bytes(row)) continue;
    findings.add(
        fmt::format("the gradient of row {} differs between {}", row, what));
  }
}

}  // namespace logpjit::tuning
