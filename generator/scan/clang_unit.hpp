// libclang's C interface with owners and C++ strings.
#pragma once

#include <clang-c/Index.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "generator/scan/diagnostics.hpp"

namespace logpjit::generator::scan {

/// One parsed file. Everything asked of its cursors needs it alive. One thread.
class ClangUnit {
 public:
  /// Parses `content` as the file `name` (errors and all) with libclang's
  /// `options`; throws Error{kInternal} if libclang gives up altogether.
  ClangUnit(const std::string& name, std::string_view content,
            const std::vector<std::string>& arguments, unsigned options);

  CXTranslationUnit get() const { return unit_.get(); }
  CXCursor root() const { return clang_getTranslationUnitCursor(get()); }

 private:
  struct Release {
    void operator()(void* index) const { clang_disposeIndex(index); }
    void operator()(CXTranslationUnitImpl* unit) const {
      clang_disposeTranslationUnit(unit);
    }
  };
  std::unique_ptr<void, Release> index_;
  std::unique_ptr<CXTranslationUnitImpl, Release> unit_;
};

/// Takes over a string of libclang's.
std::string take(CXString string);

/// Where it stands in the file the author wrote: a macro's use, not its body.
Position position_of(CXSourceLocation location);
Position position_of(CXCursor cursor);

std::vector<CXCursor> children(CXCursor cursor);
std::vector<CXCursor> children(CXCursor cursor, CXCursorKind kind);

/// "a::b::name". Empty parts (anonymous namespaces) are left out.
std::string qualified_name(CXCursor cursor);

}  // namespace logpjit::generator::scan
