// Matches template parameters with domains.
#include "generator/scan/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "generator/scan/domain_text.hpp"

namespace logpjit::generator::scan {
namespace {

constexpr IntegerRange kInt{std::numeric_limits<int>::min(),
                            std::numeric_limits<int>::max()};

bool is_template_parameter(CXCursor cursor) {
  const CXCursorKind kind = clang_getCursorKind(cursor);
  return kind == CXCursor_TemplateTypeParameter ||
         kind == CXCursor_NonTypeTemplateParameter ||
         kind == CXCursor_TemplateTemplateParameter;
}

bool is_pack(CXCursor parameter) {
  CXTranslationUnit unit = clang_Cursor_getTranslationUnit(parameter);
  CXToken* tokens = nullptr;
  unsigned count = 0;
  clang_tokenize(unit, clang_getCursorExtent(parameter), &tokens, &count);
  bool found = false;
  for (unsigned i = 0; i < count; ++i) {
    found = found || take(clang_getTokenSpelling(unit, tokens[i])) == "...";
  }
  clang_disposeTokens(unit, tokens, count);
  return found;
}

// Nothing when the type is none of a spec's or config's.
std::optional<ParameterKind> kind_of(CXCursor parameter) {
  if (is_pack(parameter)) return std::nullopt;
  switch (clang_getCursorKind(parameter)) {
    case CXCursor_TemplateTypeParameter:
      return ParameterKind::kType;
    case CXCursor_NonTypeTemplateParameter:
      break;
    default:
      return std::nullopt;
  }
  switch (clang_getCanonicalType(clang_getCursorType(parameter)).kind) {
    case CXType_Bool:
      return ParameterKind::kBoolean;
    case CXType_Short:
    case CXType_UShort:
    case CXType_Int:
    case CXType_UInt:
    case CXType_Long:
    case CXType_ULong:
    case CXType_LongLong:
    case CXType_ULongLong:
      return ParameterKind::kInteger;
    default:
      return std::nullopt;
  }
}

bool is_signed(CXTypeKind kind) {
  return kind == CXType_Short || kind == CXType_Int || kind == CXType_Long ||
         kind == CXType_LongLong;
}

// What the manifest's 64-bit signed numbers and the parameter's type share.
IntegerRange type_range(CXCursor parameter, ParameterKind kind) {
  if (kind != ParameterKind::kInteger) return {0, 1};
  const CXType type = clang_getCanonicalType(clang_getCursorType(parameter));
  const auto bits = static_cast<int>(8 * clang_Type_getSizeOf(type));
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (!is_signed(type.kind)) {
    return {0, bits == 64 ? kMax : (std::int64_t{1} << bits) - 1};
  }
  const std::int64_t high = kMax >> (64 - bits);
  return {-high - 1, high};
}

// Configs hold ints.
IntegerRange narrow_to_int(IntegerRange range) {
  return {std::max(range.low, kInt.low), std::min(range.high, kInt.high)};
}

class Matching {
 public:
  Matching(const std::vector<DomainMarker>& domains, Diagnostics& diagnostics)
      : domains_(domains),
        used_(domains.size(), false),
        diagnostics_(diagnostics) {}

  std::optional<TemplateParameter> match(CXCursor cursor) {
    TemplateParameter parameter;
    parameter.name = take(clang_getCursorSpelling(cursor));
    const Position place = position_of(cursor);
    const DomainMarker* marker = take_marker(parameter.name);
    const auto kind = kind_of(cursor);
    if (parameter.name.empty()) {
      diagnostics_.add(place,
                       "a template parameter has no name: give it one, and a "
                       "LOGPJIT_SPEC or LOGPJIT_TUNE");
      return std::nullopt;
    }
    if (!kind) {
      diagnostics_.add(place, fmt::format("template parameter '{}' must be a "
                                          "type, a bool or an integer of 16 "
                                          "bits or more: change it",
                                          parameter.name));
      return std::nullopt;
    }
    parameter.kind = *kind;
    if (marker == nullptr) {
      diagnostics_.add(
          place, fmt::format("template parameter '{0}' has no domain: add "
                             "LOGPJIT_SPEC({0}, \"...\") or LOGPJIT_TUNE({0}, "
                             "\"...\") after the template head",
                             parameter.name));
      return std::nullopt;
    }
    parameter.role = marker->role;
    return with_domain(std::move(parameter), *marker, cursor);
  }

  void report_unused() {
    for (std::size_t i = 0; i < domains_.size(); ++i) {
      if (used_[i]) continue;
      diagnostics_.add(
          domains_[i].position,
          fmt::format("no template parameter '{}' is left for this domain: "
                      "correct the name or remove the domain",
                      domains_[i].parameter));
    }
  }

 private:
  const DomainMarker* take_marker(const std::string& name) {
    for (std::size_t i = 0; i < domains_.size(); ++i) {
      if (used_[i] || domains_[i].parameter != name) continue;
      used_[i] = true;
      return &domains_[i];
    }
    return nullptr;
  }

  std::optional<TemplateParameter> with_domain(TemplateParameter parameter,
                                               const DomainMarker& marker,
                                               CXCursor cursor) {
    const bool tunable = marker.role == ParameterRole::kTunable;
    if (tunable && parameter.kind == ParameterKind::kType) {
      diagnostics_.add(marker.position,
                       fmt::format("'{}' is a type, and types cannot be tuned: "
                                   "use LOGPJIT_SPEC",
                                   parameter.name));
      return std::nullopt;
    }
    IntegerRange range = type_range(cursor, parameter.kind);
    if (tunable) range = narrow_to_int(range);
    auto parsed = parse_domain(marker.domain, parameter.kind, range);
    if (const auto* fault = std::get_if<std::string>(&parsed)) {
      diagnostics_.add(marker.position, fmt::format("domain of '{}': {}",
                                                    parameter.name, *fault));
      return std::nullopt;
    }
    parameter.domain = std::get<Domain>(std::move(parsed));
    return parameter;
  }

  const std::vector<DomainMarker>& domains_;
  std::vector<bool> used_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::vector<TemplateParameter> parameters_of(
    CXCursor kernel, const std::vector<DomainMarker>& domains,
    Diagnostics& diagnostics) {
  Matching matching(domains, diagnostics);
  std::vector<TemplateParameter> parameters;
  for (CXCursor child : children(kernel)) {
    if (!is_template_parameter(child)) continue;
    auto parameter = matching.match(child);
    if (!parameter) continue;
    const std::string key = parameter->key();
    if (std::ranges::find(parameters, key, &TemplateParameter::key) !=
        parameters.end()) {
      diagnostics.add(position_of(child),
                      fmt::format("template parameter '{}' is the second with "
                                  "the key '{}': rename it",
                                  parameter->name, key));
      continue;
    }
    parameters.push_back(std::move(*parameter));
  }
  matching.report_unused();
  return parameters;
}

}  // namespace logpjit::generator::scan
