// Words and constructs that have one place, or none.
#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "tests/architecture/rules.hpp"

namespace logpjit::architecture {
namespace {

using Paths = std::vector<std::string_view>;

/// `pattern` may not occur in files below `within` other than `except`.
struct Ban {
  std::string_view part;  ///< plain text of every match: spares most searches
  std::regex pattern;
  Paths within;
  std::string_view except;
  const char* message;
  bool in_comments = false;
};

const Paths kProduct = {"templates/", "generator/", "cache/",
                        "runtime/",   "tuning/",    "cli/"};
const Paths kTextMakers = {"generator/", "cache/"};
const Paths kEverywhere = {""};
constexpr const char* kEmptyName =
    "says nothing of what the type is: name the thing";
constexpr const char* kNote = "is a note to self: do it, or file it";

std::regex type_named(const char* ending) {
  return std::regex(fmt::format(R"(\b(class|struct)\s+\w*{}\b)", ending));
}

const std::vector<Ban>& bans() {
  static const std::vector<Ban> table = {
      {"getenv", std::regex(R"(\b(secure_)?getenv\b)"), kProduct,
       "runtime/options.cpp",
       "reads the environment: only runtime/options.cpp does, take an Option"},
      {"asm", std::regex(R"(\basm\b|\b__asm(__)?\b)"), kEverywhere,
       "templates/prelude/device.h",
       "is inline assembly: it belongs in templates/prelude/device.h"},
      {"std::to_string", std::regex(R"(\bstd::to_string\b)"), kTextMakers, "",
       "follows the locale: format with fmt"},
      {"include",
       std::regex(R"(^\s*#\s*include\s*<(iostream|sstream|ostream|iomanip)>)"),
       kTextMakers, "", "formats by the locale: use fmt"},
      {"Manager", type_named("Manager"), kEverywhere, "", kEmptyName},
      {"Helper", type_named("Helper"), kEverywhere, "", kEmptyName},
      {"Util", type_named("Utils?"), kEverywhere, "", kEmptyName},
      {"using", std::regex(R"(\busing\s+namespace\b)"), kProduct, "",
       "brings in a whole namespace: name what is used"},
      {"TO"
       "DO",
       std::regex("\\bTO"
                  "DO\\b"),
       kEverywhere, "", kNote, true},
      {"FIX"
       "ME",
       std::regex("\\bFIX"
                  "ME\\b"),
       kEverywhere, "", kNote, true},
  };
  return table;
}

bool applies(const Ban& ban, std::string_view path) {
  if (path == ban.except) return false;
  return std::any_of(ban.within.begin(), ban.within.end(),
                     [&](auto folder) { return path.starts_with(folder); });
}

}  // namespace

void check_words(const SourceFile& file, Violations& found) {
  if (!is_cpp(file.path)) return;
  for (const Ban& ban : bans()) {
    if (!applies(ban, file.path)) continue;
    const auto& lines = ban.in_comments ? file.lines : file.code;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].find(ban.part) == std::string::npos) continue;
      std::smatch match;
      if (!std::regex_search(lines[i], match, ban.pattern)) continue;
      found.push_back({file.path, i + 1,
                       fmt::format("\"{}\" {}", match.str(), ban.message)});
    }
  }
}

}  // namespace logpjit::architecture
