// Runs closure, parser and rules over each template.
#include "generator/scan/scanner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "generator/content.hpp"
#include "generator/scan/clang_unit.hpp"
#include "generator/scan/closure.hpp"
#include "generator/scan/kernels.hpp"
#include "logpjit/error.hpp"

namespace logpjit::generator::scan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrelude = "prelude/scan.h";
constexpr std::string_view kTemplateSuffix = ".cuh";

fs::path without_trailing_slash(const fs::path& dir) {
  const fs::path normal = dir.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

std::vector<fs::path> templates_in(const fs::path& dir) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const bool is_template =
        entry.is_regular_file() && entry.path().extension() == kTemplateSuffix;
    if (is_template) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

TemplateFile template_file(const fs::path& path, const fs::path& dir) {
  const fs::path relative =
      fs::weakly_canonical(path).lexically_relative(fs::weakly_canonical(dir));
  const bool outside = relative.empty() || *relative.begin() == "..";
  return {outside ? path.filename().string() : relative.generic_string(),
          path.lexically_normal()};
}

std::vector<std::string> parser_arguments(const fs::path& dir) {
  return {"-x",
          "c++",
          "-std=c++20",
          "-nostdinc",
          "-nostdinc++",
          "-w",
          "-ferror-limit=0",
          "-include",
          (dir / kPrelude).string(),
          "-I",
          dir.string()};
}

void report_parse_errors(const ClangUnit& unit, Diagnostics& diagnostics) {
  const unsigned count = clang_getNumDiagnostics(unit.get());
  for (unsigned i = 0; i < count; ++i) {
    CXDiagnostic diagnostic = clang_getDiagnostic(unit.get(), i);
    if (clang_getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Error) {
      diagnostics.add_from_compiler(
          position_of(clang_getDiagnosticLocation(diagnostic)),
          take(clang_getDiagnosticSpelling(diagnostic)));
    }
    clang_disposeDiagnostic(diagnostic);
  }
}

TemplateManifest scan_template(const TemplateFile& file, const fs::path& dir,
                               KernelPlaces& known, Diagnostics& diagnostics) {
  const std::size_t known_faults = diagnostics.size();
  TemplateManifest manifest;
  manifest.file = file.name;
  manifest.closure = close_over(file, dir, diagnostics);
  const ClangUnit unit(file.path.string(), read_content(file.path),
                       parser_arguments(dir), CXTranslationUnit_KeepGoing);
  manifest.kernels = kernels_of(unit, file, known, diagnostics);
  report_parse_errors(unit, diagnostics);
  // A fault may well be why.
  if (manifest.kernels.empty() && diagnostics.size() == known_faults) {
    diagnostics.add({file.path.string(), 1, 1},
                    "no kernel here: mark one with LOGPJIT_KERNEL, or keep the "
                    "file in common/");
  }
  return manifest;
}

}  // namespace

ScanResult scan_templates(const fs::path& templates_dir,
                          const std::vector<fs::path>& files) {
  const fs::path dir = without_trailing_slash(templates_dir);
  if (!fs::is_regular_file(dir / kPrelude)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no {} in '{}': give the folder of logpjit's "
                            "templates with --templates-dir",
                            kPrelude, templates_dir.string()));
  }
  ScanResult result;
  KernelPlaces known;
  for (const fs::path& path : files.empty() ? templates_in(dir) : files) {
    result.manifest.templates.push_back(scan_template(
        template_file(path, dir), dir, known, result.diagnostics));
  }
  return result;
}

}  // namespace logpjit::generator::scan
