// Reads the annotate attributes of a function.
#include "generator/scan/markers.hpp"

#include <optional>
#include <string_view>

namespace logpjit::generator::scan {
namespace {

// As in prelude/scan.h.
constexpr std::string_view kKernel = "logpjit:kernel";
constexpr std::string_view kSpec = "logpjit:spec:";
constexpr std::string_view kTune = "logpjit:tune:";

std::optional<DomainMarker> domain_marker(std::string_view text,
                                          Position position) {
  const bool spec = text.starts_with(kSpec);
  if (!spec && !text.starts_with(kTune)) return std::nullopt;
  text.remove_prefix(spec ? kSpec.size() : kTune.size());
  const std::size_t colon = text.find(':');
  return DomainMarker{spec ? ParameterRole::kSpec : ParameterRole::kTunable,
                      std::string(text.substr(0, colon)),
                      std::string(text.substr(colon + 1)), std::move(position)};
}

}  // namespace

Markers markers_of(CXCursor function) {
  Markers markers;
  for (CXCursor attribute : children(function, CXCursor_AnnotateAttr)) {
    const std::string text = take(clang_getCursorSpelling(attribute));
    if (text == kKernel) markers.kernel = true;
    if (auto domain = domain_marker(text, position_of(attribute))) {
      markers.domains.push_back(std::move(*domain));
    }
  }
  return markers;
}

}  // namespace logpjit::generator::scan
