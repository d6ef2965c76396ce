// Hand-written kernels behind prelude/host.h, compiled and run by the real
// host compiler and executor.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "logpjit/error.hpp"
#include "runtime/cpu/cpu_device.hpp"
#include "runtime/cpu/host_compiler.hpp"

namespace logpjit::runtime::testing {

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Every kernel here takes these.
struct Arguments {
  const float* in = nullptr;
  float* out = nullptr;
  int* integers = nullptr;
  long long n = 0;
};

/// prelude/host.h, `Arguments`, a kernel `probe` with `body`, and its entry.
inline generator::Source make_source(const std::string& body) {
  generator::Source source;
  source.dialect = generator::Dialect::kHost;
  source.kernel = "probe";
  source.text =
      read_text(LOGPJIT_SOURCE_DIR "/templates/prelude/host.h") +
      "namespace logpjit::device {\n"
      "struct Arguments { const float* in; float* out; int* integers; i64 n; "
      "};\n"
      "template <typename T, int kBlock>\n"
      "LOGPJIT_KERNEL(kBlock, 1) probe(const Arguments a) {\n" +
      body +
      "\n}\n}\nLOGPJIT_HOST_ENTRY(logpjit::device::probe<float, 64>, "
      "logpjit::device::Arguments)\n";
  return source;
}

inline HostCompiler& shared_compiler() {
  static HostCompiler compiler;
  return compiler;
}

inline CpuDevice& shared_device() {
  static CpuDevice device(CpuDeviceOptions{.threads = 2});
  return device;
}

inline std::unique_ptr<Function> build(const std::string& body) {
  return shared_device().load(
      shared_compiler().compile(make_source(body), shared_device().target()),
      0);
}

inline void launch(const Function& function, const LaunchShape& shape,
                   const Arguments& arguments) {
  shared_device().launch(function, shape, nullptr, &arguments,
                         sizeof arguments);
}

/// The message of the Error{kInternal} that the launch must end with.
inline std::string failure_of(const std::string& body, const LaunchShape& shape,
                              const Arguments& arguments = {}) {
  const auto function = build(body);
  try {
    launch(*function, shape, arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal) << error.message();
    return error.message();
  }
  ADD_FAILURE() << "the launch did not fail";
  return {};
}

}  // namespace logpjit::runtime::testing
