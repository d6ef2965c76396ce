// Finds "file(line): error" and "file:line:column: error" and quotes the lines.
#include "runtime/compile_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

namespace logpjit::runtime {
namespace {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Where the word "error" starts the complaint of a line ("fatal error" and
/// "catastrophic error" too), or npos.
std::size_t find_error(std::string_view line) {
  for (const std::string_view word : {" error:", " error #", " error "}) {
    const std::size_t at = line.find(word);
    if (at != std::string_view::npos) return at + 1;
  }
  return line.starts_with("error:") ? 0 : std::string_view::npos;
}

/// The line number where `line` starts with "name(12)" or "name:12:".
std::optional<std::size_t> error_position(std::string_view line,
                                          std::string_view name) {
  if (!line.starts_with(name) || find_error(line) == std::string_view::npos) {
    return std::nullopt;
  }
  line.remove_prefix(name.size());
  if (!line.starts_with('(') && !line.starts_with(':')) return std::nullopt;
  const char closing = line.front() == '(' ? ')' : ':';
  line.remove_prefix(1);
  std::size_t number = 0;
  const char* end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data(), end, number);
  if (error != std::errc{} || rest == end || *rest != closing) {
    return std::nullopt;
  }
  return number;
}

void append_quote(std::string& text, std::string_view complaint,
                  const std::vector<std::string_view>& lines,
                  std::size_t number) {
  constexpr std::size_t kAround = kQuotedLinesAround;
  fmt::format_to(std::back_inserter(text), "{}\n", complaint);
  const std::size_t first = number > kAround ? number - kAround : 1;
  const std::size_t last = std::min(number + kAround, lines.size());
  for (std::size_t at = first; at <= last; ++at) {
    fmt::format_to(std::back_inserter(text), "{} {:>5} | {}\n",
                   at == number ? '>' : ' ', at, lines[at - 1]);
  }
}

}  // namespace

std::string quote_error_lines(std::string_view source, std::string_view log,
                              std::string_view name) {
  const std::vector<std::string_view> lines = split_lines(source);
  std::set<std::size_t> quoted;
  std::string text;
  for (const std::string_view line : split_lines(log)) {
    const std::optional<std::size_t> number = error_position(line, name);
    if (!number || *number < 1 || *number > lines.size()) continue;
    if (quoted.size() == kMaxQuotedErrors) break;
    if (!quoted.insert(*number).second) continue;
    append_quote(text, line, lines, *number);
  }
  return text;
}

std::string first_error(std::string_view log) {
  const std::vector<std::string_view> lines = split_lines(log);
  for (const std::string_view line : lines) {
    const std::size_t at = find_error(line);
    if (at != std::string_view::npos) return std::string(line.substr(at));
  }
  const auto any = std::find_if(lines.begin(), lines.end(),
                                [](auto line) { return !line.empty(); });
  return any == lines.end() ? std::string() : std::string(*any);
}

}  // namespace logpjit::runtime
