// The header dictionary of a .npy file.
#include "tuning/npy_header.hpp"

#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "logpjit/error.hpp"

namespace logpjit::tuning {
namespace {

[[noreturn]] void refuse(std::string reason) {
  throw Error(ErrorCode::kInvalidArgument, std::move(reason));
}

/// A cursor over the Python literal.
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  bool take(char wanted) {
    skip_space();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) refuse(fmt::format("the header lacks a '{}'", wanted));
  }

  std::string string() {
    skip_space();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '\'' && quote != '"') refuse("the header lacks a string");
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos)
      refuse("a string in the header ends not");
    std::string result(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return result;
  }

  bool boolean() {
    if (take_word("True")) return true;
    if (take_word("False")) return false;
    refuse("'fortran_order' in the header is neither True nor False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> result;
    expect('(');
    while (!take(')')) {
      result.push_back(integer());
      if (take(',')) continue;
      expect(')');
      break;
    }
    return result;
  }

  /// A string, or the source of a list (a structured type).
  std::string type() {
    skip_space();
    if (rest_.empty() || rest_.front() != '[') return string();
    const std::size_t end = rest_.find(']');
    if (end == std::string_view::npos) refuse("'descr' in the header ends not");
    std::string result(rest_.substr(0, end + 1));
    rest_.remove_prefix(end + 1);
    return result;
  }

  bool at_end() {
    skip_space();
    return rest_.empty();
  }

 private:
  void skip_space() {
    const std::size_t first = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(std::min(first, rest_.size()));
  }

  bool take_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    const auto [end, fault] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (fault != std::errc{}) refuse("'shape' in the header is not integers");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (value < 0) refuse("'shape' in the header has a negative dimension");
    return value;
  }

  std::string_view rest_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text) {
  Literal literal(text);
  std::optional<std::string> type;
  std::optional<bool> fortran;
  std::optional<std::vector<std::int64_t>> shape;
  literal.expect('{');
  while (!literal.take('}')) {
    const std::string key = literal.string();
    literal.expect(':');
    if (key == "descr") {
      type = literal.type();
    } else if (key == "fortran_order") {
      fortran = literal.boolean();
    } else if (key == "shape") {
      shape = literal.tuple();
    } else {
      refuse(fmt::format("the header has the unknown key '{}'", key));
    }
    if (literal.take(',')) continue;
    literal.expect('}');
    break;
  }
  if (!literal.at_end()) refuse("the header goes on after its dictionary");
  if (!type) refuse("the header has no 'descr'");
  if (!fortran) refuse("the header has no 'fortran_order'");
  if (!shape) refuse("the header has no 'shape'");
  return {*type, *fortran, *shape};
}

std::string npy_header_text(const NpyHeader& header) {
  return fmt::format(
      "{{'descr': '{}', 'fortran_order': {}, 'shape': ({}{}), }}", header.descr,
      header.fortran_order ? "True" : "False", fmt::join(header.shape, ", "),
      header.shape.size() == 1 ? "," : "");
}

}  // namespace logpjit::tuning
