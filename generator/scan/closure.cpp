// Walks includes and applies the rules that need no parsing.
#include "generator/scan/closure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "generator/content.hpp"
#include "generator/scan/forbidden_words.hpp"

namespace logpjit::generator::scan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCommon = "common/";
constexpr std::string_view kPrelude = "prelude/";

struct Include {
  std::string target;  ///< without quotes; empty when not a quoted literal
  Position position;
};

bool is_include_word(std::string_view word) {
  return word == "include" || word == "include_next" || word == "import";
}

std::vector<Include> includes_of(const std::vector<Token>& tokens) {
  std::vector<Include> includes;
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
    const bool is_directive = tokens[i].starts_line && tokens[i].text == "#" &&
                              is_include_word(tokens[i + 1].text);
    if (!is_directive) continue;
    std::string_view operand = tokens[i + 2].text;
    const bool quoted = operand.size() > 2 && operand.starts_with('"') &&
                        operand.ends_with('"');
    includes.push_back(
        {std::string(quoted ? operand.substr(1, operand.size() - 2) : ""),
         tokens[i].position});
  }
  return includes;
}

// A compiler looks beside the includer first, the generator never does.
bool is_hidden(const std::string& target, const fs::path& includer,
               const fs::path& templates_dir) {
  const fs::path beside = includer.parent_path() / target;
  return fs::exists(beside) && !fs::equivalent(beside, templates_dir / target);
}

// The rule a target breaks, or nothing.
std::string target_message(const std::string& target, const fs::path& includer,
                           const fs::path& templates_dir) {
  if (target.starts_with(kPrelude)) {
    return "the prelude comes first by itself: remove this include";
  }
  const bool is_common =
      target.starts_with(kCommon) &&
      fs::path(target).lexically_normal().generic_string() == target;
  if (!is_common) {
    return "templates include \"common/...\" files only: copy what you need "
           "into one and include that";
  }
  if (!fs::is_regular_file(templates_dir / target)) {
    return fmt::format("no file '{}' in '{}': create it or correct the name",
                       target, templates_dir.string());
  }
  if (is_hidden(target, includer, templates_dir)) {
    return fmt::format(
        "'{}' beside this file hides the one in '{}': rename the former",
        target, templates_dir.string());
  }
  return "";
}

class Walk {
 public:
  Walk(const fs::path& templates_dir, Diagnostics& diagnostics)
      : templates_dir_(templates_dir), diagnostics_(diagnostics) {}

  void visit(const TemplateFile& file) {
    const std::string content = read_content(file.path);
    const auto tokens = tokenize(file.path.string(), content);
    check_words(tokens, diagnostics_);
    open_.push_back(file.name);
    for (const Include& include : includes_of(tokens)) {
      follow(include, file.path);
    }
    open_.pop_back();
    closure_.push_back({file.name, content_digest(content)});
  }

  std::vector<ClosureFile> take() { return std::move(closure_); }

 private:
  void follow(const Include& include, const fs::path& includer) {
    const std::string message =
        target_message(include.target, includer, templates_dir_);
    if (!message.empty()) {
      diagnostics_.add(include.position, message);
    } else if (std::ranges::find(open_, include.target) != open_.end()) {
      diagnostics_.add(
          include.position,
          fmt::format("'{}' includes itself by way of this line: move what "
                      "both need into a file of its own",
                      include.target));
    } else if (std::ranges::find(closure_, include.target,
                                 &ClosureFile::path) == closure_.end()) {
      visit({include.target, templates_dir_ / include.target});
    }
  }

  const fs::path& templates_dir_;
  Diagnostics& diagnostics_;
  std::vector<std::string> open_;  // from the template down to here
  std::vector<ClosureFile> closure_;
};

}  // namespace

std::vector<ClosureFile> close_over(const TemplateFile& file,
                                    const fs::path& templates_dir,
                                    Diagnostics& diagnostics) {
  Walk walk(templates_dir, diagnostics);
  walk.visit(file);
  return walk.take();
}

}  // namespace logpjit::generator::scan
