// Parses and checks domains.
#include "generator/scan/domain_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "generator/canonical_integer.hpp"

namespace logpjit::generator::scan {
namespace {

constexpr std::string_view kDots = "..";

bool is_identifier(std::string_view word) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return is_letter(word[0]) && std::ranges::all_of(word, [&](char c) {
           return is_letter(c) || is_digit(c);
         });
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// What is wrong with one value, or nothing.
std::string value_fault(std::string_view word, ParameterKind kind,
                        IntegerRange type) {
  if (kind == ParameterKind::kType) {
    if (is_identifier(word)) return "";
    return fmt::format("'{}' is not a type's name: write one like fp32", word);
  }
  const auto number = parse_canonical_integer(word);
  if (!number) {
    return fmt::format("'{}' is not a plain decimal integer: write one", word);
  }
  if (*number >= type.low && *number <= type.high) return "";
  return fmt::format(
      "{} does not fit the parameter, which holds {}..{}: change either", word,
      type.low, type.high);
}

std::variant<Domain, std::string> parse_range(std::string_view text,
                                              ParameterKind kind,
                                              IntegerRange type) {
  if (kind != ParameterKind::kInteger) {
    return "a range is for integer parameters only: list the values";
  }
  const std::size_t dots = text.find(kDots);
  const std::string_view low = text.substr(0, dots);
  const std::string_view high = text.substr(dots + kDots.size());
  for (std::string_view end : {low, high}) {
    std::string fault = value_fault(end, kind, type);
    if (!fault.empty()) return fault;
  }
  Domain domain{.values = {},
                .low = *parse_canonical_integer(low),
                .high = *parse_canonical_integer(high)};
  if (domain.low <= domain.high) return domain;
  return fmt::format("the range {} is empty: put the smaller end first", text);
}

std::variant<Domain, std::string> parse_list(std::string_view text,
                                             ParameterKind kind,
                                             IntegerRange type) {
  Domain domain;
  domain.values = split_words(text);
  if (domain.values.empty()) {
    return "it is empty: list the values, or give a range like 1..1024";
  }
  for (auto word = domain.values.begin(); word != domain.values.end(); ++word) {
    std::string fault = value_fault(*word, kind, type);
    if (!fault.empty()) return fault;
    if (std::find(domain.values.begin(), word, *word) != word) {
      return fmt::format("{} stands there twice: remove one", *word);
    }
  }
  return domain;
}

}  // namespace

std::variant<Domain, std::string> parse_domain(std::string_view text,
                                               ParameterKind kind,
                                               IntegerRange type) {
  return text.find(kDots) == std::string_view::npos
             ? parse_list(text, kind, type)
             : parse_range(text, kind, type);
}

}  // namespace logpjit::generator::scan
