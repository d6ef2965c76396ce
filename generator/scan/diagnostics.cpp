// Keeps diagnostics sorted and free of repeats, and prints them.
#include "generator/scan/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace logpjit::generator::scan {

void Diagnostics::add(const Position& position, std::string message) {
  all_.insert({position, std::move(message)});
}

void Diagnostics::add_from_compiler(const Position& position,
                                    std::string message) {
  const bool spoken_of =
      std::ranges::any_of(all_, [&](const Diagnostic& diagnostic) {
        return diagnostic.position.file == position.file &&
               diagnostic.position.line == position.line;
      });
  if (!spoken_of) add(position, std::move(message));
}

std::string Diagnostics::text() const {
  std::string text;
  for (const auto& [position, message] : all_) {
    fmt::format_to(std::back_inserter(text), "{}:{}:{}: error: {}\n",
                   position.file, position.line, position.column, message);
  }
  return text;
}

}  // namespace logpjit::generator::scan
