// The kernels of a parsed template.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/manifest.hpp"
#include "generator/scan/clang_unit.hpp"
#include "generator/scan/closure.hpp"

namespace logpjit::generator::scan {

/// Where each kernel of the scan so far was first seen, by unqualified name.
using KernelPlaces = std::map<std::string, Position>;

/// Every function marked LOGPJIT_KERNEL, in file order, with all its rules
/// applied. Adds to `known`.
std::vector<KernelManifest> kernels_of(const ClangUnit& unit,
                                       const TemplateFile& file,
                                       KernelPlaces& known,
                                       Diagnostics& diagnostics);

}  // namespace logpjit::generator::scan
