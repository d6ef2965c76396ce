// Length, head comment, name and include guard of each file; the root's
// entries.
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "tests/architecture/rules.hpp"

namespace logpjit::architecture {
namespace {

constexpr std::size_t kMostLines = 400;

const std::set<std::string_view> kTopLevel = {
    "CMakeLists.txt", "CMakePresets.json",
    "LICENSE",        "README.md",
    "cache",          "cli",
    "generator",      "python",
    "runtime",        "scripts",
    "templates",      "tests",
    "tuning"};

bool is_prose(std::string_view path) { return path.ends_with(".md"); }

/// Says in its first lines what it is; a program's first line is its own. Lists
/// of files say it by their place.
bool has_head_comment(const SourceFile& file) {
  if (file.path.ends_with("CMakeLists.txt")) return true;
  std::size_t line = 0;
  if (!file.lines.empty() && file.lines[0].starts_with("#!")) line = 1;
  if (file.lines.size() <= line) return false;
  const std::string& first = file.lines[line];
  if (is_cpp(file.path)) return first.starts_with("//");
  return first.starts_with('#') || first.starts_with("\"\"\"");
}

bool has_pragma_once(const SourceFile& file) {
  return std::find(file.code.begin(), file.code.end(), "#pragma once") !=
         file.code.end();
}

/// snake_case.hpp, .cpp, .cuh; .h for the preludes and the C header.
bool is_well_named(const std::string& path) {
  static const std::regex usual(R"((.*/)?[a-z0-9_]+\.(hpp|cpp|cuh))");
  static const std::regex c_like(
      R"((templates/prelude|runtime/include/logpjit|tests/.*)/[a-z0-9_]+\.(h|c))");
  return std::regex_match(path, usual) || std::regex_match(path, c_like);
}

}  // namespace

void check_form(const SourceFile& file, Violations& found) {
  if (is_prose(file.path)) return;
  const auto add = [&](std::size_t line, std::string message) {
    found.push_back({file.path, line, std::move(message)});
  };
  if (file.lines.size() > kMostLines) {
    add(kMostLines + 1, fmt::format("has {} lines, more than {}: split it",
                                    file.lines.size(), kMostLines));
  }
  if (!has_head_comment(file)) {
    add(1, "does not begin with a comment that says what it is");
  }
  if (!is_cpp(file.path)) return;
  if (!is_well_named(file.path)) {
    add(0, "is not named in snake_case with the ending .hpp, .cpp or .cuh");
  }
  if (file.path.ends_with(".hpp") && !has_pragma_once(file)) {
    add(1, "has no #pragma once");
  }
}

void check_layout(const Tree& tree, Violations& found) {
  std::set<std::string_view> folders;
  std::set<std::string_view> paths;
  for (const SourceFile& file : tree.files) {
    paths.insert(file.path);
    const std::size_t slash = file.path.find('/');
    if (slash != std::string::npos) {
      folders.insert(std::string_view(file.path).substr(0, slash));
    }
  }
  for (const std::string& name : tree.top_level) {
    if (!kTopLevel.contains(name)) {
      found.push_back({name, 0, "the top level is fixed: put it in a folder"});
    }
  }
  for (const std::string_view folder : folders) {
    const std::string readme = fmt::format("{}/README.md", folder);
    if (!paths.contains(readme)) {
      found.push_back({readme, 0, "is missing: every folder says what it is"});
    }
  }
}

}  // namespace logpjit::architecture
