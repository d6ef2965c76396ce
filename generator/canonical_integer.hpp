// Integers as domains and configs write them: decimal, one spelling each.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace logpjit::generator {

/// The value of "-12", "0", "4096"; nothing for any other text, among it "",
/// "+1", "007", "-0", " 1" and what does not fit 64 bits.
inline std::optional<std::int64_t> parse_canonical_integer(
    std::string_view text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  if (digits.starts_with('0') && (digits.size() > 1 || negative)) return {};
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return {};
  return value;
}

}  // namespace logpjit::generator
