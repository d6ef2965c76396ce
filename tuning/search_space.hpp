// The launch configurations worth trying for one specification and device.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "logpjit/device.hpp"
#include "logpjit/launch_config.hpp"
#include "runtime/config_lookup.hpp"

namespace logpjit::tuning {

/// Why a configuration that could be launched is not tried.
enum class SearchRule {
  kResidency,    ///< more threads a multiprocessor than it holds
  kRegisters,    ///< too few registers a thread for what it keeps in flight
  kFewBytes,     ///< too few bytes in flight to hide memory's latency
  kIdleThreads,  ///< blocks larger than the row
  kManyRows,     ///< rows split over blocks though there are enough rows
  kNoEffect,     ///< differs from another in what the device ignores
};
std::string_view name(SearchRule rule);

struct SearchSpace {
  /// The default configuration first, then by nearness to it.
  std::vector<LaunchConfig> configs;
  /// How many configurations which rule kept out.
  std::map<std::string, std::int64_t> rejected;
};

/// Every combination of every kernel's tunables that serves the specification,
/// from the embedded manifest, less what the device's limits and the rules
/// keep out; the default is always in it. Throws what `default_choices` does.
SearchSpace search_space(const runtime::TunedShape& shape,
                         const DeviceInfo& device);

/// The configuration used without tuning.
LaunchConfig default_config(const runtime::TunedShape& shape,
                            const DeviceInfo& device);

/// How far two configurations lie apart: octaves, summed over the parameters.
double distance(const LaunchConfig& a, const LaunchConfig& b);

/// At most `count` of `configs`: the first, half of them nearest to it, then
/// each time the one farthest from all before.
std::vector<LaunchConfig> spread_out(std::span<const LaunchConfig> configs,
                                     std::size_t count);
/// At most `count` of `configs` nearest to `center`, without those in `known`.
std::vector<LaunchConfig> neighbours(std::span<const LaunchConfig> configs,
                                     const LaunchConfig& center,
                                     std::span<const LaunchConfig> known,
                                     std::size_t count);

}  // namespace logpjit::tuning
