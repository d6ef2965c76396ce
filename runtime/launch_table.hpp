// How each kernel is launched: default configurations and launch shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "logpjit/device.hpp"
#include "logpjit/kernel_spec.hpp"
#include "logpjit/launch_config.hpp"
#include "runtime/device.hpp"

namespace logpjit::runtime {

/// A configuration and the largest row count it is meant for.
struct RowChoice {
  std::int64_t max_rows = INT64_MAX;
  LaunchConfig config;
  bool operator==(const RowChoice&) const = default;
};

/// What is launched without tuning, by row count, ascending; the last entry
/// serves any number of rows.
std::vector<RowChoice> default_choices(const KernelSpec& spec,
                                       const DeviceInfo& device);

/// The part of a launch that depends on spec and config only; `grid` is then
/// blocks per row.
LaunchShape shape_per_row(const KernelSpec& spec, const LaunchConfig& config);

}  // namespace logpjit::runtime
