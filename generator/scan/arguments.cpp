// Flattens the argument struct and applies its rules.
#include "generator/scan/arguments.hpp"

#include <fmt/format.h>

#include <utility>

namespace logpjit::generator::scan {
namespace {

bool is_scalar(CXType type) {
  switch (type.kind) {
    case CXType_Bool:
    case CXType_Char_S:
    case CXType_Char_U:
    case CXType_SChar:
    case CXType_UChar:
    case CXType_Short:
    case CXType_UShort:
    case CXType_Int:
    case CXType_UInt:
    case CXType_Long:
    case CXType_ULong:
    case CXType_LongLong:
    case CXType_ULongLong:
    case CXType_Float:
    case CXType_Double:
      return true;
    default:
      return false;
  }
}

bool is_leaf(CXType type) {
  if (type.kind != CXType_Pointer) return is_scalar(type);
  const CXType pointee = clang_getPointeeType(type);
  return pointee.kind == CXType_Void || is_scalar(pointee);
}

// The part of a struct that makes it more than its bytes, or nothing.
std::string nontrivial_part(CXCursor member) {
  switch (clang_getCursorKind(member)) {
    case CXCursor_CXXBaseSpecifier:
      return "base class";
    case CXCursor_Destructor:
      return "destructor";
    case CXCursor_Constructor:
      return clang_CXXConstructor_isCopyConstructor(member) ||
                     clang_CXXConstructor_isMoveConstructor(member)
                 ? "copy or move constructor"
                 : "";
    case CXCursor_CXXMethod:
      if (clang_CXXMethod_isVirtual(member)) return "virtual function";
      return take(clang_getCursorSpelling(member)) == "operator="
                 ? "assignment operator"
                 : "";
    default:
      return "";
  }
}

class Flattening {
 public:
  Flattening(KernelManifest& manifest, Diagnostics& diagnostics)
      : manifest_(manifest), diagnostics_(diagnostics) {}

  void add_record(CXCursor record, const std::string& prefix,
                  std::int64_t offset) {
    for (CXCursor member : children(record)) {
      const std::string part = nontrivial_part(member);
      if (!part.empty()) {
        diagnostics_.add(
            position_of(member),
            fmt::format("kernel arguments must be trivially copyable: remove "
                        "this {}",
                        part));
      }
      if (clang_getCursorKind(member) == CXCursor_FieldDecl) {
        add_field(member, prefix, offset);
      }
    }
  }

 private:
  void add_field(CXCursor field, const std::string& prefix,
                 std::int64_t record_offset) {
    const std::string name = prefix + take(clang_getCursorSpelling(field));
    const CXType type = clang_getCanonicalType(clang_getCursorType(field));
    const CXCursor declaration = clang_getTypeDeclaration(type);
    const std::int64_t offset =
        record_offset + clang_Cursor_getOffsetOfField(field) / 8;
    if (clang_Cursor_isBitField(field) != 0) {
      reject(field, name, "a bit-field");
    } else if (type.kind == CXType_Record &&
               clang_getCursorKind(declaration) == CXCursor_StructDecl) {
      add_record(declaration, name + ".", offset);
    } else if (is_leaf(type)) {
      manifest_.arguments.push_back({name, take(clang_getTypeSpelling(type)),
                                     offset, clang_Type_getSizeOf(type)});
    } else {
      reject(field, name,
             fmt::format("of type '{}'", take(clang_getTypeSpelling(type))));
    }
  }

  void reject(CXCursor field, std::string_view name, std::string_view what) {
    diagnostics_.add(
        position_of(field),
        fmt::format("argument field '{}' is {}: use a scalar, a pointer to a "
                    "scalar or void, or a struct of these",
                    name, what));
  }

  KernelManifest& manifest_;
  Diagnostics& diagnostics_;
};

}  // namespace

void read_arguments(CXCursor kernel, KernelManifest& manifest,
                    Diagnostics& diagnostics) {
  const auto parameters = children(kernel, CXCursor_ParmDecl);
  if (parameters.size() != 1) {
    diagnostics.add(position_of(kernel),
                    fmt::format("kernel '{}' takes {} arguments: give it "
                                "exactly one, a struct passed by value",
                                manifest.name, parameters.size()));
    return;
  }
  const CXType type =
      clang_getCanonicalType(clang_getCursorType(parameters[0]));
  const CXCursor record = clang_getTypeDeclaration(type);
  if (type.kind != CXType_Record ||
      clang_getCursorKind(record) != CXCursor_StructDecl) {
    diagnostics.add(
        position_of(parameters[0]),
        fmt::format("kernel '{}' takes '{}': pass one plain struct by value, "
                    "the same for every template argument",
                    manifest.name, take(clang_getTypeSpelling(type))));
    return;
  }
  manifest.argument_type = qualified_name(record);
  manifest.argument_size = clang_Type_getSizeOf(type);
  Flattening(manifest, diagnostics).add_record(record, "", 0);
}

}  // namespace logpjit::generator::scan
