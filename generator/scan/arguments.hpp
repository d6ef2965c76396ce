// A kernel's run-time argument: one struct, seen as a flat list of fields.
#pragma once

#include "generator/manifest.hpp"
#include "generator/scan/clang_unit.hpp"

namespace logpjit::generator::scan {

/// Fills `argument_type`, `argument_size` and `arguments` of `manifest`, and
/// reports whatever the host could not pack byte by byte.
void read_arguments(CXCursor kernel, KernelManifest& manifest,
                    Diagnostics& diagnostics);

}  // namespace logpjit::generator::scan
