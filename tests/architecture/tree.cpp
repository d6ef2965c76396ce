// Reads a source tree.
#include "tests/architecture/tree.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/architecture/blank.hpp"

namespace logpjit::architecture {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

bool ends_with_any(std::string_view path,
                   std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](auto ending) { return path.ends_with(ending); });
}

/// Sources in a language the rules know; programs without an ending (scripts/*)
/// count by their first line.
bool is_text(std::string_view path, std::string_view text) {
  return is_cpp(path) || text.starts_with("#!") ||
         ends_with_any(path, {".txt", ".cmake", ".in", ".sh", ".py", ".md"});
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The root's own entries in .gitignore: "/name" or "/name/".
std::set<std::string> ignored_names(const fs::path& root) {
  std::set<std::string> names;
  for (std::string line : split_lines(read(root / ".gitignore"))) {
    if (!line.starts_with('/')) continue;
    if (line.ends_with('/')) line.pop_back();
    names.insert(line.substr(1));
  }
  return names;
}

void read_file(const fs::path& path, const fs::path& root, Tree& tree) {
  const std::string text = read(path);
  const std::string name = path.lexically_relative(root).generic_string();
  if (is_text(name, text)) tree.files.push_back(make_file(name, text));
}

/// True when there is any file in it.
bool read_folder(const fs::path& folder, const fs::path& root, Tree& tree) {
  bool any = false;
  fs::recursive_directory_iterator entries(folder), end;
  for (; entries != end; ++entries) {
    if (entries->path().filename() == "__pycache__") {
      entries.disable_recursion_pending();
    } else if (entries->is_regular_file()) {
      any = true;
      read_file(entries->path(), root, tree);
    }
  }
  return any;
}

}  // namespace

bool is_cpp(std::string_view path) {
  return ends_with_any(path,
                       {".hpp", ".cpp", ".h", ".cuh", ".c", ".cc", ".cu"});
}

SourceFile make_file(std::string path, std::string_view text) {
  SourceFile file;
  file.lines = split_lines(text);
  file.code = split_lines(is_cpp(path) ? blank_cpp(text) : blank_hash(text));
  file.path = std::move(path);
  return file;
}

Include parse_include(std::string_view line) {
  const auto skip_space = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  for (const std::string_view token : {"#", "include"}) {
    skip_space();
    if (!line.starts_with(token)) return {};
    line.remove_prefix(token.size());
  }
  skip_space();
  if (!line.starts_with('<') && !line.starts_with('"')) return {};
  const bool angled = line.starts_with('<');
  const std::size_t end = line.find(angled ? '>' : '"', 1);
  if (end == std::string_view::npos) return {};
  return {std::string(line.substr(1, end - 1)), angled};
}

Tree read_tree(const fs::path& root) {
  Tree tree;
  const std::set<std::string> ignored = ignored_names(root);
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename();
    if (name.starts_with('.') || ignored.contains(name)) continue;
    if (entry.is_directory()) {
      if (!read_folder(entry, root, tree)) continue;
    } else {
      read_file(entry.path(), root, tree);
    }
    tree.top_level.push_back(name);
  }
  std::sort(tree.top_level.begin(), tree.top_level.end());
  std::sort(tree.files.begin(), tree.files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return tree;
}

}  // namespace logpjit::architecture
