// A kernel's template parameters with the domains declared beside them.
#pragma once

#include <vector>

#include "generator/manifest.hpp"
#include "generator/scan/clang_unit.hpp"
#include "generator/scan/markers.hpp"

namespace logpjit::generator::scan {

/// In template order. Reports parameters without a domain, domains without a
/// parameter, malformed domains and parameters no spec or config can name.
std::vector<TemplateParameter> parameters_of(
    CXCursor kernel, const std::vector<DomainMarker>& domains,
    Diagnostics& diagnostics);

}  // namespace logpjit::generator::scan
