// How each kernel is launched: default configurations and launch shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "logpjit/device.hpp"
#include "logpjit/kernel_spec.hpp"
#include "logpjit/launch_config.hpp"
#include "runtime/device.hpp"

namespace logpjit::runtime {

/// A configuration, the largest row count it is meant for, and where it is
/// from.
struct RowChoice {
  std::int64_t max_rows = INT64_MAX;
  LaunchConfig config;
  ConfigSource source = ConfigSource::kDefault;
  /// Of the measured shape from these, at most; in 1/65536 octaves.
  std::int64_t distance = 0;
  bool shipped = false;  ///< measured elsewhere, came with the library
  bool operator==(const RowChoice&) const = default;
};

/// What is launched without tuning, by row count, ascending; the last entry
/// serves any number of rows.
std::vector<RowChoice> default_choices(const KernelSpec& spec,
                                       const DeviceInfo& device);

/// The part of a launch that depends on spec and config only.
struct RowShape {
  LaunchShape launch;  ///< grid = blocks per row
  /// Blocks stay and take rows in turn, one cluster (or block) a
  /// multiprocessor; else every row has blocks of its own.
  bool persistent = false;
};
RowShape shape_per_row(const KernelSpec& spec, const LaunchConfig& config);

/// Whether a row and the next one's beginning fit into a multiprocessor's (or
/// two's) shared memory, and the fused kernel serves the specification.
bool fits_on_chip(const KernelSpec& spec, const DeviceInfo& device);

}  // namespace logpjit::runtime
