// The files a template is made of.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "generator/manifest.hpp"
#include "generator/scan/diagnostics.hpp"

namespace logpjit::generator::scan {

/// A template file: what manifests call it, and where it lies.
struct TemplateFile {
  std::string name;  ///< relative to templates/, or the bare file name outside
  std::filesystem::path path;
};

/// Follows `#include "common/..."` depth first and returns each file once,
/// includes before includers, the template last. Applies the include and word
/// rules to every file on the way. Throws Error{kIo} if `file` is unreadable.
std::vector<ClosureFile> close_over(const TemplateFile& file,
                                    const std::filesystem::path& templates_dir,
                                    Diagnostics& diagnostics);

}  // namespace logpjit::generator::scan
