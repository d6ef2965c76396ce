// logpjit-embed-fallback: compiles the fallback's kernels and writes them as a
// C++ source. Runs during the build only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "generator/generate.hpp"
#include "logpjit/error.hpp"
#include "runtime/cpu/host_compiler.hpp"
#include "runtime/cpu/host_info.hpp"
#include "runtime/cuda/nvrtc_compiler.hpp"
#include "runtime/fallback/embed/image_source.hpp"
#include "runtime/fallback/images.hpp"
#include "templates/common/arguments.cuh"

namespace logpjit::runtime::embed {
namespace {

namespace fs = std::filesystem;

cache::Image build(Compiler& compiler, std::string_view kernel,
                   const std::string& target) {
  return compiler.compile(
      generator::generate_kernel(
          kernel, {}, {{"block", device::kFallbackBlock}}, compiler.dialect(),
          generator::embedded_manifest()),
      target);
}

void build_host(const std::string& compiler, std::vector<BuiltImage>& images) {
  HostCompiler host({.compiler = compiler, .timeout_s = 600});
  for (const std::string& target : host_targets()) {
    for (const std::string_view kernel : kFallbackKernels) {
      images.push_back(
          {std::string(kernel), target, build(host, kernel, target)});
    }
  }
}

/// The version is lowered, and the NUL that ends the text stays outside.
cache::Image for_older_drivers(cache::Image image) {
  const std::string ptx = with_older_version(
      {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()});
  image.bytes.resize(ptx.size());
  std::memcpy(image.bytes.data(), ptx.data(), ptx.size());
  return image;
}

/// Why there is none; empty when all are built.
std::string build_cuda(const std::string& nvrtc,
                       std::vector<BuiltImage>& images) {
  try {
    cuda::NvrtcCompiler compiler(nvrtc, {});
    for (const FallbackCudaTarget& made_for : kFallbackCudaTargets) {
      const std::string target(made_for.name);
      for (const std::string_view kernel : kFallbackKernels) {
        images.push_back({std::string(kernel), target,
                          for_older_drivers(build(compiler, kernel, target))});
      }
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    return error.message();
  }
  return {};
}

void write(const fs::path& output, const std::string& text) {
  std::ofstream stream(output, std::ios::binary);
  stream << text;
  stream.close();
  if (stream) return;
  throw Error(ErrorCode::kIo,
              fmt::format("cannot write '{}': check folder and space",
                          output.string()));
}

void run(const std::string& compiler, const std::string& nvrtc,
         const fs::path& output) {
  std::vector<BuiltImage> images;
  build_host(compiler, images);
  const std::string why = build_cuda(nvrtc, images);
  if (!why.empty()) {
    fmt::print(stderr,
               "logpjit-embed-fallback: warning: no fallback on CUDA in this "
               "build: {}\n",
               why);
  }
  write(output, image_source(images, why));
}

}  // namespace
}  // namespace logpjit::runtime::embed

int main(int argc, char** argv) {
  constexpr int kFailed = 1;
  constexpr int kWrongUsage = 2;
  CLI::App app("Compiles logpjit's fallback kernels into a C++ source file.");
  std::string compiler;
  std::string nvrtc;
  std::filesystem::path output;
  app.add_option("--compiler", compiler, "C++ compiler")->required();
  app.add_option("--nvrtc", nvrtc, "NVRTC library file; looked for if empty");
  app.add_option("-o,--output", output, "C++ file to write")->required();
  try {
    app.parse(argc, argv);
    logpjit::runtime::embed::run(compiler, nvrtc, output);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  } catch (const logpjit::Error& error) {
    fmt::print(stderr, "logpjit-embed-fallback: {}\n{}\n", error.message(),
               error.log());
    return kFailed;
  } catch (const std::exception& error) {
    fmt::print(stderr, "logpjit-embed-fallback: {}\n", error.what());
    return kFailed;
  }
}
