// A source tree as the rules see it: files, lines, and lines without comments
// and literals.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace logpjit::architecture {

struct SourceFile {
  std::string path;  ///< relative to the root, '/'-separated
  std::vector<std::string> lines;
  /// The same lines with comments and the insides of string and character
  /// literals blanked, so that a word in a message breaks no rule.
  std::vector<std::string> code;
};

struct Tree {
  std::vector<std::string> top_level;  ///< names in the root, sorted
  std::vector<SourceFile> files;       ///< sorted by path
};

/// Reads every text file below `root` that the project could hold: entries of
/// the root that its .gitignore names ("/build/") and those that begin with a
/// dot are left out, and so are folders without any file.
Tree read_tree(const std::filesystem::path& root);

/// One file from its text; `code` is blanked by the C++ rules for C++ files
/// and by '#' comments for others.
SourceFile make_file(std::string path, std::string_view text);

bool is_cpp(std::string_view path);

/// What an #include line names; empty on other lines.
struct Include {
  std::string target;
  bool angled = false;
};
Include parse_include(std::string_view line);

}  // namespace logpjit::architecture
