// Which launch configurations a device can run at all.
#pragma once

#include <optional>
#include <string_view>

#include "logpjit/device.hpp"
#include "logpjit/kernel_spec.hpp"
#include "logpjit/launch_config.hpp"

namespace logpjit::runtime {

/// Why a configuration is not for a specification and device.
enum class ConfigRule {
  kDomain,        ///< no template has these parameters and values
  kThreads,       ///< a block of more than 1024 threads
  kSharedMemory,  ///< more shared memory than a block may have
  kCluster,       ///< clusters, on a device that has none
  kRow,           ///< the row does not suit the kernel
};
std::string_view name(ConfigRule rule);

/// The first rule that the configuration breaks; nothing when it can be
/// launched. Decided from the manifest, the launch table and the device's
/// limits, before anything is compiled. Never throws.
std::optional<ConfigRule> broken_rule(const KernelSpec& spec,
                                      const LaunchConfig& config,
                                      const DeviceInfo& device);

}  // namespace logpjit::runtime
