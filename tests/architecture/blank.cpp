// Blanks comments and literals in C++ text.
#include "tests/architecture/blank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace logpjit::architecture {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Walks the text once; `text_` is what is left, blanked up to `at_`.
class Blanker {
 public:
  explicit Blanker(std::string_view text) : text_(text) {}

  std::string cpp() {
    while (at_ < text_.size()) step_cpp();
    return std::move(text_);
  }

  std::string hash() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        blank_to(text_.find('\n', at_));
      } else if (c == '"' || c == '\'') {
        skip_quoted(c);
      } else {
        ++at_;
      }
    }
    return std::move(text_);
  }

 private:
  bool starts(std::string_view token) const {
    return std::string_view(text_).substr(at_).starts_with(token);
  }

  void blank_to(std::size_t end) {
    end = std::min(end, text_.size());
    for (; at_ < end; ++at_) {
      if (text_[at_] != '\n') text_[at_] = ' ';
    }
  }

  void step_cpp() {
    if (starts("//")) {
      blank_to(text_.find('\n', at_));
    } else if (starts("/*")) {
      const std::size_t end = text_.find("*/", at_ + 2);
      blank_to(end == std::string::npos ? end : end + 2);
    } else if (starts("R\"") && !after_word()) {
      skip_raw();
    } else if (text_[at_] == '"') {
      skip_quoted('"');
    } else if (text_[at_] == '\'' && !after_word()) {
      skip_quoted('\'');
    } else {
      ++at_;  // a quote within a number (1'000) ends up here too
    }
  }

  bool after_word() const { return at_ > 0 && is_word(text_[at_ - 1]); }

  /// Ends at the closing quote or, for broken text, at the end of the line.
  void skip_quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      const char c = text_[at_];
      if (c == quote) break;
      text_[at_] = ' ';
      if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
        text_[++at_] = ' ';
      }
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  void skip_raw() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string::npos) return blank_to(open);
    const std::string close = fmt::format(
        "){}\"", std::string_view(text_).substr(at_ + 2, open - at_ - 2));
    at_ = open + 1;
    blank_to(text_.find(close, at_));
    at_ = std::min(at_ + close.size(), text_.size());
  }

  std::string text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string blank_cpp(std::string_view text) { return Blanker(text).cpp(); }
std::string blank_hash(std::string_view text) { return Blanker(text).hash(); }

}  // namespace logpjit::architecture
