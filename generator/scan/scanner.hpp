// Template files in, manifest and diagnostics out.
#pragma once

#include <filesystem>
#include <vector>

#include "generator/manifest.hpp"
#include "generator/scan/diagnostics.hpp"

namespace logpjit::generator::scan {

struct ScanResult {
  Manifest manifest;  ///< of use only when `diagnostics` is empty
  Diagnostics diagnostics;
};

/// Scans `files`, or every *.cuh directly in `templates_dir` in order of name.
/// Throws Error{kInvalidArgument} if `templates_dir` has no prelude/scan.h,
/// Error{kIo} on a file that cannot be read.
ScanResult scan_templates(const std::filesystem::path& templates_dir,
                          const std::vector<std::filesystem::path>& files);

}  // namespace logpjit::generator::scan
