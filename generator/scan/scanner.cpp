// Runs closure, parser and rules over each template.
#include "generator/scan/scanner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
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

// What one call of scan_templates carries from template to template.
class Scan {
 public:
  explicit Scan(fs::path dir) : dir_(std::move(dir)) {}

  void add(const TemplateFile& file) {
    Diagnostics& diagnostics = result_.diagnostics;
    const std::size_t known_faults = diagnostics.size();
    TemplateManifest manifest;
    manifest.file = file.name;
    manifest.closure = close_over(file, dir_, diagnostics);
    check_common_files(manifest.closure);
    const ClangUnit unit = parse(file.path);
    manifest.kernels = kernels_of(unit, file, known_kernels_, diagnostics);
    report_parse_errors(unit, diagnostics);
    // A fault may well be why.
    if (manifest.kernels.empty() && diagnostics.size() == known_faults) {
      diagnostics.add({file.path.string(), 1, 1},
                      "no kernel here: mark one with LOGPJIT_KERNEL, or keep "
                      "the file in common/");
    }
    result_.manifest.templates.push_back(std::move(manifest));
  }

  ScanResult take() { return std::move(result_); }

 private:
  ClangUnit parse(const fs::path& file) const {
    return ClangUnit(file.string(), read_content(file), parser_arguments(dir_),
                     CXTranslationUnit_KeepGoing);
  }

  // Each must not lean on what its includers happen to include before it.
  void check_common_files(const std::vector<ClosureFile>& closure) {
    for (auto file = closure.begin(); file + 1 != closure.end(); ++file) {
      if (!checked_.insert(file->path).second) continue;
      report_parse_errors(parse(dir_ / file->path), result_.diagnostics);
    }
  }

  fs::path dir_;
  KernelPlaces known_kernels_;
  std::set<std::string> checked_;
  ScanResult result_;
};

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
  Scan scan(dir);
  for (const fs::path& path : files.empty() ? templates_in(dir) : files) {
    scan.add(template_file(path, dir));
  }
  return scan.take();
}

}  // namespace logpjit::generator::scan
