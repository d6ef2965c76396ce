// Finds kernels and applies the rules on their declarations.
#include "generator/scan/kernels.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "generator/scan/arguments.hpp"
#include "generator/scan/markers.hpp"
#include "generator/scan/parameters.hpp"

namespace logpjit::generator::scan {
namespace {

bool is_scope(CXCursorKind kind) {
  return kind == CXCursor_Namespace || kind == CXCursor_StructDecl ||
         kind == CXCursor_ClassDecl || kind == CXCursor_ClassTemplate ||
         kind == CXCursor_LinkageSpec || kind == CXCursor_UnexposedDecl;
}

bool is_function(CXCursorKind kind) {
  return kind == CXCursor_FunctionTemplate || kind == CXCursor_FunctionDecl ||
         kind == CXCursor_CXXMethod;
}

bool stands_in_namespace(CXCursor function) {
  const CXCursorKind kind =
      clang_getCursorKind(clang_getCursorSemanticParent(function));
  return kind == CXCursor_Namespace || clang_isTranslationUnit(kind);
}

// "Reads rows. Writes sums." -> "Reads rows."
std::string first_sentence(const std::string& text) {
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    const bool ends = text[i] == '.' && text[i + 1] == ' ' &&
                      text[i + 2] >= 'A' && text[i + 2] <= 'Z';
    if (ends) return text.substr(0, i + 1);
  }
  return text;
}

class Search {
 public:
  Search(const TemplateFile& file, KernelPlaces& known,
         Diagnostics& diagnostics)
      : file_(file), known_(known), diagnostics_(diagnostics) {}

  void visit(CXCursor scope) {
    for (CXCursor cursor : children(scope)) {
      const CXCursorKind kind = clang_getCursorKind(cursor);
      if (is_function(kind)) visit_function(cursor);
      if (is_scope(kind)) visit(cursor);
    }
  }

  std::vector<KernelManifest> take_kernels() { return std::move(kernels_); }

 private:
  void visit_function(CXCursor function) {
    const Markers markers = markers_of(function);
    if (markers.kernel) {
      check_declaration(function);
      check_name(function);
      add_kernel(function, markers);
    } else if (!markers.domains.empty()) {
      diagnostics_.add(markers.domains[0].position,
                       "a domain without LOGPJIT_KERNEL: add that after the "
                       "domains, or remove them");
    }
  }

  void check_declaration(CXCursor function) {
    check(function, clang_getCursorKind(function) == CXCursor_FunctionTemplate,
          "must be a function template: give it template parameters");
    check(function, stands_in_namespace(function),
          "must stand in a namespace, not in a class: move it out");
    check(function, clang_getCursorLinkage(function) != CXLinkage_Internal,
          "is invisible outside the file: remove `static` or the anonymous "
          "namespace");
    check(function, clang_isCursorDefinition(function) != 0,
          "has no body here: define it where it is declared");
    check(function, clang_getCursorResultType(function).kind == CXType_Void,
          "must return void, as LOGPJIT_KERNEL says: remove what follows it");
    check(function, !take(clang_Cursor_getRawCommentText(function)).empty(),
          "has no doc comment: say in a /// line what it computes");
    check(function,
          clang_Location_isFromMainFile(clang_getCursorLocation(function)) != 0,
          "stands in an included file: move it into a template file");
  }

  void check_name(CXCursor function) {
    const auto [first, added] = known_.emplace(
        take(clang_getCursorSpelling(function)), position_of(function));
    const auto& [name, place] = *first;
    check(function, added,
          fmt::format("is already at {}:{}: rename one of them", place.file,
                      place.line));
  }

  void check(CXCursor function, bool holds, std::string_view fault) {
    if (holds) return;
    diagnostics_.add(
        position_of(function),
        fmt::format("kernel '{}' {}", take(clang_getCursorSpelling(function)),
                    fault));
  }

  void add_kernel(CXCursor function, const Markers& markers) {
    KernelManifest kernel;
    kernel.name = take(clang_getCursorSpelling(function));
    kernel.qualified_name = qualified_name(function);
    kernel.summary =
        first_sentence(take(clang_Cursor_getBriefCommentText(function)));
    kernel.file = file_.name;
    kernel.line = position_of(function).line;
    kernel.parameters = parameters_of(function, markers.domains, diagnostics_);
    read_arguments(function, kernel, diagnostics_);
    kernels_.push_back(std::move(kernel));
  }

  const TemplateFile& file_;
  KernelPlaces& known_;
  Diagnostics& diagnostics_;
  std::vector<KernelManifest> kernels_;
};

}  // namespace

std::vector<KernelManifest> kernels_of(const ClangUnit& unit,
                                       const TemplateFile& file,
                                       KernelPlaces& known,
                                       Diagnostics& diagnostics) {
  Search search(file, known, diagnostics);
  search.visit(unit.root());
  return search.take_kernels();
}

}  // namespace logpjit::generator::scan
