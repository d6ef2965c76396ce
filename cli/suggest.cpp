// The known name that a mistyped one most resembles.
#include "cli/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace logpjit::cli {
namespace {

/// Edits between two names, a swap of neighbours counting as one.
std::size_t distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return table[i * width + j];
  };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      at(i, j) = std::min(
          {at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return table.back();
}

}  // namespace

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& known) {
  std::optional<std::string> best;
  std::size_t least = 0;
  for (const std::string& candidate : known) {
    const std::size_t edits = distance(name, candidate);
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t allowed = std::max<std::size_t>(2, longer / 3);
    if (edits > allowed || edits >= longer) continue;
    if (best && edits >= least) continue;
    best = candidate;
    least = edits;
  }
  return best;
}

std::string suggestion(std::string_view name,
                       const std::vector<std::string>& known) {
  const auto meant = nearest(name, known);
  return meant ? fmt::format("; did you mean '{}'?", *meant) : "";
}

}  // namespace logpjit::cli
