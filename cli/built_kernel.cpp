// One kernel that was found or compiled, for tables and documents.
#include "cli/built_kernel.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/launch_table.hpp"
#include "runtime/parallel.hpp"
#include "tuning/stopwatch.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;

Json known(std::int32_t value) {
  return value < 0 ? Json(nullptr) : Json(value);
}

}  // namespace

BuiltKernel build_kernel(ArchBuilder& builder, const KernelSpec& spec,
                         const LaunchConfig& config) {
  BuiltKernel kernel{builder.arch().name, config, {}, 0, 0};
  const auto start = std::chrono::steady_clock::now();
  kernel.built = builder.build(spec, config);
  kernel.ms = tuning::ms_since(start);
  kernel.dynamic_shared_bytes =
      runtime::shape_per_row(spec, config).launch.dynamic_shared_bytes;
  return kernel;
}

int build_threads() {
  constexpr unsigned kMost = 8;
  return static_cast<int>(
      std::clamp(std::thread::hardware_concurrency(), 1U, kMost));
}

std::vector<BuiltKernel> build_kernels(ArchBuilder& builder,
                                       const KernelSpec& spec,
                                       std::span<const LaunchConfig> configs) {
  std::vector<BuiltKernel> kernels(configs.size());
  runtime::parallel_for(configs.size(), build_threads(), [&](std::size_t i) {
    kernels[i] = build_kernel(builder, spec, configs[i]);
  });
  return kernels;
}

std::string to_json(const BuiltKernel& kernel) {
  const cache::Image& image = *kernel.built.image;
  const Json object{{"arch", kernel.arch},
                    {"config", kernel.config.text()},
                    {"key", kernel.built.key.hash()},
                    {"registers", known(image.facts.registers)},
                    {"spills", known(image.facts.spill_bytes)},
                    {"stack", known(image.facts.stack_bytes)},
                    {"static_shared", known(image.facts.static_shared_bytes)},
                    {"dynamic_shared", kernel.dynamic_shared_bytes},
                    {"size", image.bytes.size()},
                    {"cache", kernel.hit() ? "hit" : "miss"},
                    {"ms", kernel.ms},
                    {"compile_ms", image.compile_ms}};
  return object.dump();
}

}  // namespace logpjit::cli
