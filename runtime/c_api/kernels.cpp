// Kernels prepared, held and launched through C.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "logpjit/error.hpp"
#include "logpjit/operations.hpp"
#include "runtime/c_api/handles.hpp"
#include "runtime/c_api/status.hpp"
#include "runtime/c_api/structs.hpp"

using logpjit::c_api::guarded;
using logpjit::c_api::kernel_spec;
using logpjit::c_api::require;
using logpjit::c_api::whole;

int logpjit_prepare(logpjit_runtime* runtime, const logpjit_spec* const* specs,
                    size_t count) {
  constexpr const char* kCall = "prepare";
  return guarded([&] {
    require(runtime, kCall, "runtime");
    std::vector<logpjit::KernelSpec> made;
    if (count > 0) require(specs, kCall, "specs");
    made.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      made.push_back(kernel_spec(kCall, whole(kCall, specs[i])));
    }
    runtime->runtime.prepare(made);
  });
}

int logpjit_kernel_create(logpjit_runtime* runtime, const logpjit_spec* spec,
                          const char* config, logpjit_kernel** kernel) {
  constexpr const char* kCall = "kernel_create";
  if (kernel != nullptr) *kernel = nullptr;
  return guarded([&] {
    require(runtime, kCall, "runtime");
    require(kernel, kCall, "kernel");
    const logpjit::KernelSpec made = kernel_spec(kCall, whole(kCall, spec));
    const logpjit::Kernel held =
        config == nullptr ? runtime->runtime.kernel(made)
                          : runtime->runtime.kernel(
                                made, logpjit::LaunchConfig::parse(config));
    *kernel = new logpjit_kernel{held};
  });
}

void logpjit_kernel_destroy(logpjit_kernel* kernel) { delete kernel; }

int logpjit_kernel_config(const logpjit_kernel* kernel, int64_t rows,
                          char* text, size_t capacity, size_t* needed) {
  constexpr const char* kCall = "kernel_config";
  return guarded([&] {
    require(kernel, kCall, "kernel");
    if (capacity > 0) require(text, kCall, "text");
    if (rows < 0) {
      throw logpjit::Error(logpjit::ErrorCode::kInvalidArgument,
                           fmt::format("{}: rows: {} is below 0", kCall, rows));
    }
    const std::string config = kernel->kernel.config(rows).text();
    if (needed != nullptr) *needed = config.size() + 1;
    if (capacity == 0) return;
    const size_t length = std::min(config.size(), capacity - 1);
    std::memcpy(text, config.data(), length);
    text[length] = '\0';
  });
}

int logpjit_kernel_launch(const logpjit_kernel* kernel,
                          const logpjit_row_forward* call,
                          logpjit_stream stream) {
  constexpr const char* kCall = "launch";
  return guarded([&] {
    require(kernel, kCall, "kernel");
    logpjit::launch(kernel->kernel,
                    logpjit::c_api::row_forward(kCall, whole(kCall, call)),
                    stream);
  });
}
