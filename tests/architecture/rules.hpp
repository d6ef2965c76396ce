// The project's rules on how files may depend on each other and what they may
// hold; README.md of this folder lists them for people.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "tests/architecture/tree.hpp"

namespace logpjit::architecture {

struct Violation {
  std::string file;
  std::size_t line = 0;  ///< from 1; 0 for the file as a whole
  std::string message;

  /// "cache/key.cpp:12: ...", as editors jump to.
  std::string text() const;
  friend auto operator<=>(const Violation&, const Violation&) = default;
};

using Violations = std::vector<Violation>;

/// Which folder includes and links which.
void check_includes(const SourceFile& file, Violations& found);
void check_links(const SourceFile& file, Violations& found);
/// Words and constructs with one place, or none.
void check_words(const SourceFile& file, Violations& found);
/// Length, head comment, name, include guard.
void check_form(const SourceFile& file, Violations& found);
/// The root's entries and each folder's README.md.
void check_layout(const Tree& tree, Violations& found);

/// All of it, sorted. Test data (tests/**/data/, tests/golden/) is left out.
Violations check(const Tree& tree);

}  // namespace logpjit::architecture
