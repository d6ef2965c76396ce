// Lets libclang's lexer split a single file.
#include "generator/scan/tokens.hpp"

#include "generator/scan/clang_unit.hpp"

namespace logpjit::generator::scan {
namespace {

TokenKind kind_of(CXToken token) {
  switch (clang_getTokenKind(token)) {
    case CXToken_Literal:
      return TokenKind::kLiteral;
    case CXToken_Punctuation:
      return TokenKind::kPunctuation;
    default:
      return TokenKind::kWord;
  }
}

CXSourceRange whole_file(CXTranslationUnit unit, const std::string& name,
                         std::size_t size) {
  CXFile file = clang_getFile(unit, name.c_str());
  return clang_getRange(
      clang_getLocationForOffset(unit, file, 0),
      clang_getLocationForOffset(unit, file, static_cast<unsigned>(size)));
}

}  // namespace

std::vector<Token> tokenize(const std::string& name, std::string_view content) {
  const ClangUnit unit(name, content, {"-x", "c++", "-std=c++20", "-w"},
                       CXTranslationUnit_SingleFileParse);
  CXToken* tokens = nullptr;
  unsigned count = 0;
  clang_tokenize(unit.get(), whole_file(unit.get(), name, content.size()),
                 &tokens, &count);
  std::vector<Token> result;
  int last_line = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (clang_getTokenKind(tokens[i]) == CXToken_Comment) continue;
    const Position position =
        position_of(clang_getTokenLocation(unit.get(), tokens[i]));
    result.push_back({kind_of(tokens[i]),
                      take(clang_getTokenSpelling(unit.get(), tokens[i])),
                      position, position.line != last_line});
    last_line = position.line;
  }
  clang_disposeTokens(unit.get(), tokens, count);
  return result;
}

}  // namespace logpjit::generator::scan
