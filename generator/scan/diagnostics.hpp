// What is wrong with the scanned files, all of it, in file order.
#pragma once

#include <compare>
#include <cstddef>
#include <set>
#include <string>

namespace logpjit::generator::scan {

/// A place in a file, as editors understand it. Line and column count from 1.
struct Position {
  std::string file;
  int line = 0;
  int column = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

struct Diagnostic {
  Position position;
  std::string message;  ///< which rule, and what to do
  friend auto operator<=>(const Diagnostic&, const Diagnostic&) = default;
};

/// Collects without repeats: a common file is read once for every template
/// that includes it.
class Diagnostics {
 public:
  void add(const Position& position, std::string message);
  /// One of the compiler's own errors. Dropped where a rule has already spoken
  /// of the same line: it would only say the same in other words.
  void add_from_compiler(const Position& position, std::string message);

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  /// "file:line:column: error: message" lines, sorted by place.
  std::string text() const;

 private:
  std::set<Diagnostic> all_;
};

}  // namespace logpjit::generator::scan
