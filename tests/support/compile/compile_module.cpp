// A library with logpjit inside, as a plug-in would be: what a process does to
// itself while one of its functions runs is the test.
#include <string>

#include "logpjit/error.hpp"
#include "logpjit/options.hpp"
#include "runtime/cpu/host_compiler.hpp"
#include "runtime/cuda/nvrtc_compiler.hpp"

namespace {

using logpjit::generator::Source;
using logpjit::runtime::HostCompiler;
using logpjit::runtime::cuda::NvrtcCompiler;

logpjit::runtime::Compiler& nvrtc() {
  static auto* const compiler = [] {
    const auto options = logpjit::Options::from_environment();
    return new NvrtcCompiler(options.nvrtc_library, options.library_folders);
  }();
  return *compiler;
}

logpjit::runtime::Compiler& host() {
  static auto* const compiler = new HostCompiler;
  return *compiler;
}

Source tiny_kernel(bool cuda) {
  Source source;
  source.dialect = cuda ? logpjit::generator::Dialect::kCuda
                        : logpjit::generator::Dialect::kHost;
  source.kernel = "fill";
  source.name_expression = "fill";
  source.text = cuda ? "__global__ void fill(float* a) { *a = 1; }\n"
                     : "extern \"C\" void fill(float* a) { *a = 1; }\n";
  return source;
}

}  // namespace

/// Compiles something small: 0 when it worked, 77 without such a compiler, else
/// 1. `kind`: "nvrtc" or "host".
extern "C" __attribute__((visibility("default"))) int compile_once(
    const char* kind) {
  const bool cuda = std::string(kind) == "nvrtc";
  try {
    auto& compiler = cuda ? nvrtc() : host();
    const std::string target =
        cuda ? "sm_90a"
        : compiler.identity().find("aarch64") != std::string::npos
            ? "aarch64-linux"
            : "x86_64-linux";
    return compiler.compile(tiny_kernel(cuda), target).bytes.empty() ? 1 : 0;
  } catch (const logpjit::Error& error) {
    return error.code() == logpjit::ErrorCode::kUnavailable ? 77 : 1;
  }
}
