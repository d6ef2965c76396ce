// A file as the words it is made of, inactive preprocessor branches included.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/scan/diagnostics.hpp"

namespace logpjit::generator::scan {

enum class TokenKind { kWord, kLiteral, kPunctuation };

/// Never a comment.
struct Token {
  TokenKind kind = TokenKind::kWord;  ///< a word is an identifier or keyword
  std::string text;
  Position position;
  bool starts_line = false;
};

/// Splits one file by itself: includes and macros are not followed. Positions
/// name `name`.
std::vector<Token> tokenize(const std::string& name, std::string_view content);

}  // namespace logpjit::generator::scan
