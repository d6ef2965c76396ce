// What of a device decides how a kernel is best launched.
#pragma once

#include <map>
#include <string>

#include "logpjit/device.hpp"

namespace logpjit::runtime {

/// Silicon features as tuned configurations name them: never the device's
/// name, driver or number. Equal features mean that a measured choice carries
/// over. "kind"; for a GPU "cc", "sms", "l2_mib", "shared_kib" and
/// "bandwidth", a step of a quarter octave of the memory's GB/s; for a CPU
/// "machine" and "threads".
std::map<std::string, std::string> device_features(const DeviceInfo& device);

/// Whether the two describe one architecture, so that a choice for one is worth
/// trying on the other: the same kind and compute capability (or machine).
bool same_architecture(const std::map<std::string, std::string>& a,
                       const std::map<std::string, std::string>& b);

}  // namespace logpjit::runtime
