// logpjit-embed: turns a manifest and the template files into a C++ source.
// Runs during the build only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include "generator/content.hpp"
#include "generator/embed/embedding.hpp"
#include "generator/manifest.hpp"
#include "logpjit/error.hpp"

namespace {

namespace fs = std::filesystem;
namespace generator = logpjit::generator;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

void embed(const fs::path& manifest_file, const fs::path& templates_dir,
           const fs::path& output) {
  const generator::Manifest manifest =
      generator::parse_manifest(generator::read_content(manifest_file));
  const auto files = generator::embed::files_to_embed(templates_dir);
  generator::embed::check_digests(manifest, files);
  std::ofstream stream(output, std::ios::binary);
  stream << generator::embed::embedding(manifest, files);
  stream.close();
  if (!stream) {
    throw logpjit::Error(logpjit::ErrorCode::kIo,
                         fmt::format("cannot write '{}': check folder and "
                                     "space",
                                     output.string()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Turns logpjit's templates into a C++ source file.");
  fs::path manifest;
  fs::path templates_dir;
  fs::path output;
  app.add_option("--manifest", manifest, "JSON from logpjit-scan")->required();
  app.add_option("--templates-dir", templates_dir, "Where the files lie")
      ->required();
  app.add_option("-o,--output", output, "C++ file to write")->required();
  try {
    app.parse(argc, argv);
    embed(manifest, templates_dir, output);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "logpjit-embed: {}\n", error.what());
    return kFailed;
  }
}
