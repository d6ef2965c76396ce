// What a device is, as far as tuning and reports care.
#pragma once

#include <cstdint>
#include <string>

#include "logpjit/api.hpp"

namespace logpjit {

enum class DeviceKind { kCpu, kCuda };

/// A device by kind and number. The CPU is always number 0.
struct DeviceId {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

/// Silicon features decide tuning; names are recorded only.
struct LOGPJIT_API DeviceInfo {
  DeviceId id;
  std::string name;      ///< "NVIDIA H200", the CPU's model name
  std::string software;  ///< driver version, or the executor's description
  int major = 0;         ///< compute capability; 0 for a CPU
  int minor = 0;
  int multiprocessors = 0;  ///< SMs, or OS threads the CPU device uses
  std::int64_t l2_bytes = 0;
  std::int64_t shared_bytes_per_block = 0;  ///< opt-in maximum
  std::int64_t shared_bytes_per_multiprocessor = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t memory_gb_per_s = 0;  ///< theoretical; 0 when unknown
};

}  // namespace logpjit
