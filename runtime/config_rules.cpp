// Rules decided from the manifest, the launch table and the device's limits.
#include "runtime/config_rules.hpp"

#include "generator/generate.hpp"
#include "logpjit/error.hpp"
#include "runtime/launch_table.hpp"
#include "templates/common/layout.cuh"

namespace logpjit::runtime {
namespace {

constexpr std::uint32_t kMostThreads = 1024;
constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kMostCluster = 16;

bool in_domain(const KernelSpec& spec, const LaunchConfig& config) {
  try {
    generator::plan(spec, config, generator::Dialect::kCuda,
                    generator::embedded_manifest());
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool has_clusters(const DeviceInfo& device) {
  return device.id.kind == DeviceKind::kCpu || device.major >= 9;
}

/// Whether a ring of the fused kernel holds a row and the beginning of the
/// next. With no group of gradient warps it holds what a row that is too long
/// for any ring does not keep in registers.
bool suits_ring(const KernelSpec& spec, const LaunchConfig& config, int slots,
                const DeviceInfo& device) {
  const int enough = device::tile_count(spec.vocab) + 2;
  if (config.at("gradient_groups") > 0) return slots >= enough;
  const int most = device::long_ring_tiles(spec.vocab);
  const LaunchConfig roomy{{"cluster", 2},
                           {"forward_threads", 256},
                           {"gradient_threads", 256},
                           {"gradient_groups", 1},
                           {"slots", enough}};
  const bool fits = shape_per_row(spec, roomy).launch.dynamic_shared_bytes <=
                    device.shared_bytes_per_block;
  return !fits && spec.aligned && most > 0 && slots >= most &&
         config.at("forward_threads") == config.at("gradient_threads");
}

/// What only a kernel knows of itself, by parameters that no other has: what a
/// ring must hold, and that lanes split over blocks fold in whole groups of
/// 256.
bool suits_row(const KernelSpec& spec, const LaunchConfig& config,
               const DeviceInfo& device) {
  if (const auto slots = config.find("slots")) {
    return suits_ring(spec, config, *slots, device);
  }
  const int split = config.find("split").value_or(1);
  const int parts = config.find("parts").value_or(1);
  return split == 1 || (device::kLanes / split * parts >= 256 &&
                        parts <= device::segment_count(spec.vocab));
}

}  // namespace

std::string_view name(ConfigRule rule) {
  switch (rule) {
    case ConfigRule::kDomain:
      return "domain";
    case ConfigRule::kThreads:
      return "threads";
    case ConfigRule::kSharedMemory:
      return "shared_memory";
    case ConfigRule::kCluster:
      return "cluster";
    case ConfigRule::kRow:
      return "row";
  }
  return "";
}

std::optional<ConfigRule> broken_rule(const KernelSpec& spec,
                                      const LaunchConfig& config,
                                      const DeviceInfo& device) {
  if (!in_domain(spec, config)) return ConfigRule::kDomain;
  if (!suits_row(spec, config, device)) return ConfigRule::kRow;
  const LaunchShape shape = shape_per_row(spec, config).launch;
  if (shape.block > kMostThreads || shape.block % kWarp != 0) {
    return ConfigRule::kThreads;
  }
  if (shape.cluster > kMostCluster ||
      (shape.cluster > 1 && !has_clusters(device))) {
    return ConfigRule::kCluster;
  }
  if (shape.dynamic_shared_bytes > device.shared_bytes_per_block) {
    return ConfigRule::kSharedMemory;
  }
  return std::nullopt;
}

}  // namespace logpjit::runtime
