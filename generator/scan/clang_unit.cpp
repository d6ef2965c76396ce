// Wraps the few libclang calls the scanner is made of.
#include "generator/scan/clang_unit.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "logpjit/error.hpp"

namespace logpjit::generator::scan {

ClangUnit::ClangUnit(const std::string& name, std::string_view content,
                     const std::vector<std::string>& arguments,
                     unsigned options)
    : index_(clang_createIndex(0, 0)) {
  std::vector<const char*> words;
  words.reserve(arguments.size());
  for (const std::string& argument : arguments)
    words.push_back(argument.data());
  CXUnsavedFile file{name.c_str(), content.data(),
                     static_cast<unsigned long>(content.size())};
  CXTranslationUnit unit = nullptr;
  const CXErrorCode code = clang_parseTranslationUnit2(
      index_.get(), name.c_str(), words.data(), static_cast<int>(words.size()),
      &file, 1, options, &unit);
  unit_.reset(unit);
  if (code != CXError_Success) {
    throw Error(ErrorCode::kInternal,
                fmt::format("libclang could not parse '{}' (code {}): report "
                            "it with the file",
                            name, static_cast<int>(code)));
  }
}

std::string take(CXString string) {
  const char* text = clang_getCString(string);
  std::string copy = text == nullptr ? "" : text;
  clang_disposeString(string);
  return copy;
}

Position position_of(CXSourceLocation location) {
  CXFile file = nullptr;
  unsigned line = 0;
  unsigned column = 0;
  clang_getExpansionLocation(location, &file, &line, &column, nullptr);
  const std::filesystem::path path = take(clang_getFileName(file));
  return {path.lexically_normal().string(), static_cast<int>(line),
          static_cast<int>(column)};
}

Position position_of(CXCursor cursor) {
  return position_of(clang_getCursorLocation(cursor));
}

std::vector<CXCursor> children(CXCursor cursor) {
  std::vector<CXCursor> found;
  clang_visitChildren(
      cursor,
      [](CXCursor child, CXCursor, CXClientData data) {
        static_cast<std::vector<CXCursor>*>(data)->push_back(child);
        return CXChildVisit_Continue;
      },
      &found);
  return found;
}

std::vector<CXCursor> children(CXCursor cursor, CXCursorKind kind) {
  std::vector<CXCursor> found = children(cursor);
  std::erase_if(found, [kind](CXCursor child) {
    return clang_getCursorKind(child) != kind;
  });
  return found;
}

std::string qualified_name(CXCursor cursor) {
  std::string name = take(clang_getCursorSpelling(cursor));
  const CXCursor parent = clang_getCursorSemanticParent(cursor);
  const CXCursorKind kind = clang_getCursorKind(parent);
  if (clang_isInvalid(kind) || clang_isTranslationUnit(kind)) return name;
  const std::string scope = qualified_name(parent);
  return scope.empty() ? name : scope + "::" + name;
}

}  // namespace logpjit::generator::scan
