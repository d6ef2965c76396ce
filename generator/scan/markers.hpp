// The attributes that prelude/scan.h makes of the LOGPJIT_ markers.
#pragma once

#include <string>
#include <vector>

#include "generator/manifest.hpp"
#include "generator/scan/clang_unit.hpp"

namespace logpjit::generator::scan {

/// One LOGPJIT_SPEC or LOGPJIT_TUNE.
struct DomainMarker {
  ParameterRole role = ParameterRole::kSpec;
  std::string parameter;
  std::string domain;  ///< not yet parsed
  Position position;
};

/// Everything marked on one function.
struct Markers {
  bool kernel = false;
  std::vector<DomainMarker> domains;
};

Markers markers_of(CXCursor function);

}  // namespace logpjit::generator::scan
