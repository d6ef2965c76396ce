// Lines no longer than a terminal is wide.
#include "cli/wrap.hpp"

#include <algorithm>

namespace logpjit::cli {

std::string wrap(std::string_view text, std::size_t indent, std::size_t columns,
                 std::size_t hang) {
  std::string lines;
  std::size_t before = indent;
  do {
    const std::size_t room = columns - std::min(columns - 1, before);
    std::size_t taken = std::min(text.size(), room);
    if (taken < text.size()) {
      const std::size_t at = text.find_last_of(" ,", taken - 1);
      if (at != std::string_view::npos && at > 0) taken = at + 1;
    }
    std::string_view part = text.substr(0, taken);
    text.remove_prefix(taken);
    part = part.substr(0, part.find_last_not_of(' ') + 1);
    lines += std::string(before, ' ').append(part) + "\n";
    before = indent + hang;
  } while (!text.empty());
  return lines;
}

}  // namespace logpjit::cli
