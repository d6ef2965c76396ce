// Runs every rule over a tree.
#include "tests/architecture/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace logpjit::architecture {
namespace {

/// Made to be wrong, or written by the program under test.
bool is_test_data(std::string_view path) {
  if (!path.starts_with("tests/")) return false;
  if (path.find("/data/") != std::string_view::npos) return true;
  return path.starts_with("tests/golden/") && !path.ends_with(".cpp") &&
         !path.ends_with(".hpp") && !path.ends_with("CMakeLists.txt");
}

}  // namespace

std::string Violation::text() const {
  if (line == 0) return fmt::format("{}: {}", file, message);
  return fmt::format("{}:{}: {}", file, line, message);
}

Violations check(const Tree& tree) {
  Violations found;
  for (const SourceFile& file : tree.files) {
    if (is_test_data(file.path)) continue;
    check_includes(file, found);
    check_links(file, found);
    check_words(file, found);
    check_form(file, found);
  }
  check_layout(tree, found);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace logpjit::architecture
