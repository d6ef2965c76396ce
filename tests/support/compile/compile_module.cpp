// A library with logpjit inside, as a plug-in would be: what a process does to
// itself while one of its functions runs is the test.
#include <span>
#include <string>

#include "logpjit/error.hpp"
#include "logpjit/options.hpp"
#include "logpjit/runtime.hpp"
#include "runtime/cpu/host_compiler.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/nvrtc_compiler.hpp"

namespace {

using logpjit::generator::Source;
using logpjit::runtime::HostCompiler;
using logpjit::runtime::cuda::NvrtcCompiler;

// Made while the library is loaded and never destroyed: threads may still be
// inside.
const auto* const options =
    new logpjit::Options(logpjit::Options::from_environment());
auto* const nvrtc =
    new NvrtcCompiler(options->nvrtc_library, options->library_folders);
auto* const host = new HostCompiler;

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

void compile_tiny(bool cuda) {
  logpjit::runtime::Compiler& compiler =
      cuda ? static_cast<logpjit::runtime::Compiler&>(*nvrtc) : *host;
  const std::string target =
      cuda ? "sm_90a"
      : compiler.identity().find("aarch64") != std::string::npos
          ? "aarch64-linux"
          : "x86_64-linux";
  if (compiler.compile(tiny_kernel(cuda), target).bytes.empty()) {
    throw logpjit::Error(logpjit::ErrorCode::kInternal, "no code");
  }
}

/// A runtime of its own on the CPU device, with one kernel from the cache.
void prepare_kernel() {
  logpjit::Options cpu = *options;
  cpu.device = "cpu";
  const logpjit::KernelSpec spec = [] {
    auto parsed = *logpjit::parse_op("logp");
    parsed.vocab = 64;
    return parsed;
  }();
  logpjit::Runtime(cpu).prepare(std::span(&spec, 1));
}

/// Or learns that its parent has done it, which counts as well.
void open_driver() {
  try {
    logpjit::runtime::cuda::Driver::open(options->driver_library, {});
  } catch (const logpjit::Error& error) {
    if (error.message().find("forked") == std::string::npos) throw;
  }
}

}  // namespace

/// Does something small of `kind`: "nvrtc" and "host" compile, "runtime" makes
/// one and prepares a kernel, "driver" opens it. 0 when it worked, 77 where
/// there is no such thing, else 1.
extern "C" __attribute__((visibility("default"))) int compile_once(
    const char* kind) {
  const std::string what = kind;
  try {
    if (what == "nvrtc" || what == "host") compile_tiny(what == "nvrtc");
    if (what == "runtime") prepare_kernel();
    if (what == "driver") open_driver();
    return 0;
  } catch (const logpjit::Error& error) {
    return error.code() == logpjit::ErrorCode::kUnavailable ? 77 : 1;
  }
}
