// Comparing what a device computed with what a case expects.
#include "tuning/case_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <set>

#include "tuning/device_tensor.hpp"

namespace logpjit::tuning {
namespace {

constexpr std::size_t kMostFindings = 3;
constexpr std::int64_t kReferenceElements = std::int64_t{1} << 24;
constexpr std::int64_t kMostSampledRows = 64;

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

std::string place(std::string_view name, std::int64_t row, std::int64_t k,
                  std::int64_t width) {
  return width == 1 ? fmt::format("{}[{}]", name, row)
                    : fmt::format("{}[{}, {}]", name, row, k);
}

}  // namespace

void Findings::add(std::string finding) {
  if (++count_ <= static_cast<std::int64_t>(kMostFindings)) {
    first_.push_back(std::move(finding));
  }
}

std::string Findings::text() const {
  std::string text = fmt::format("{}", fmt::join(first_, "; "));
  const auto more = count_ - static_cast<std::int64_t>(first_.size());
  if (more > 0) text += fmt::format("; and {} more", more);
  return text;
}

void check_near(std::string_view name, std::int64_t row, std::int64_t k,
                double value, double right, const Tolerance& tolerance,
                Findings& findings) {
  if (tolerance.near(value, right)) return;
  findings.add(fmt::format("{} is {}, float64 says {}",
                           place(name, row, k, k < 0 ? 1 : 2), value, right));
}

void check_expected(const Case& one, const Output& output, Findings& findings) {
  const auto found = one.expected.values.find(std::string(output.name));
  if (found == one.expected.values.end()) return;
  const std::vector<double>& right = found->second;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t row = one.expected.row(at / output.width);
    const std::int64_t k = at % output.width;
    const double value =
        output.values[static_cast<std::size_t>(row * output.width + k)];
    if (one.expected.tolerance.near(value, right[i])) continue;
    findings.add(fmt::format("{} is {}, expected {}",
                             place(output.name, row, k, output.width), value,
                             right[i]));
  }
}

void check_written(const Output& output, Findings& findings) {
  constexpr std::uint32_t kUnwritten = kPoison * 0x01010101u;
  for (std::size_t i = 0; i < output.values.size(); ++i) {
    if (bits(output.values[i]) != kUnwritten) continue;
    findings.add(fmt::format("{} was not written at row {}", output.name,
                             static_cast<std::int64_t>(i) / output.width));
  }
}

void check_ignored(const Case& one, const Output& output, Findings& findings) {
  if (one.expected.policy != CasePolicy::kIgnoredId) return;
  for (std::size_t i = 0; i < output.values.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / output.width;
    const auto k = static_cast<std::int64_t>(i) % output.width;
    const bool masked = !one.row_mask.empty() &&
                        one.row_mask[static_cast<std::size_t>(row)] == 0;
    const std::int64_t id = one.ids.at(row, k);
    const bool valid = id >= 0 && id < one.columns();
    if ((valid && !masked) || bits(output.values[i]) == 0) continue;
    findings.add(fmt::format("{} is {} where it must be exactly 0",
                             place(output.name, row, k, output.width),
                             output.values[i]));
  }
}

void check_same_bits(const Output& one, const Output& other,
                     std::string_view what, Findings& findings) {
  for (std::size_t i = 0; i < one.values.size(); ++i) {
    if (bits(one.values[i]) == bits(other.values[i])) continue;
    findings.add(fmt::format("{} differs between {} at row {}: {} and {}",
                             one.name, what,
                             static_cast<std::int64_t>(i) / one.width,
                             one.values[i], other.values[i]));
  }
}

std::vector<std::int64_t> reference_rows(const Case& one) {
  const std::int64_t rows = one.rows();
  const std::int64_t columns = std::max<std::int64_t>(one.columns(), 1);
  const std::int64_t affordable = kReferenceElements / columns;
  const std::int64_t count =
      rows <= affordable
          ? rows
          : std::clamp<std::int64_t>(affordable, 1, kMostSampledRows);
  std::set<std::int64_t> chosen(one.expected.rows.begin(),
                                one.expected.rows.end());
  for (std::int64_t i = 0; i < count; ++i) {
    chosen.insert(count == rows ? i : rows / count * i);
  }
  if (rows > 0) chosen.insert(rows - 1);
  return {chosen.begin(), chosen.end()};
}

}  // namespace logpjit::tuning
