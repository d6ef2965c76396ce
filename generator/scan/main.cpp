// logpjit-scan: prints the manifest of template files as JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "generator/manifest.hpp"
#include "generator/scan/scanner.hpp"
#include "logpjit/error.hpp"

namespace {

namespace fs = std::filesystem;
using logpjit::Error;
using logpjit::ErrorCode;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

void write_file(const fs::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot write '{}': check folder and space",
                            file.string()));
  }
}

int scan(const fs::path& templates_dir, const std::vector<fs::path>& files,
         const fs::path& output) {
  const auto result =
      logpjit::generator::scan::scan_templates(templates_dir, files);
  if (!result.diagnostics.empty()) {
    fmt::print(stderr, "{}", result.diagnostics.text());
    return kFailed;
  }
  const std::string json = logpjit::generator::to_json(result.manifest);
  if (output.empty()) {
    fmt::print("{}", json);
  } else {
    write_file(output, json);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Prints the manifest of logpjit template files as JSON.");
  fs::path templates_dir = "templates";
  std::vector<fs::path> files;
  fs::path output;
  app.add_option("--templates-dir", templates_dir,
                 "Folder that holds prelude/ and common/")
      ->capture_default_str();
  app.add_option("-o,--output", output, "Write here instead of stdout");
  app.add_option("files", files, "Templates; all *.cuh of the folder if none");
  try {
    app.parse(argc, argv);
    return scan(templates_dir, files, output);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "logpjit-scan: {}\n", error.what());
    return kFailed;
  }
}
