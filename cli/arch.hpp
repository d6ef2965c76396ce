// Architectures that code can be made for without having one.
#pragma once

#include <string>
#include <string_view>

#include "logpjit/device.hpp"

namespace logpjit::cli {

/// A CUDA architecture "sm_90a", or "cpu": this machine's processor.
struct Arch {
  std::string name;
  /// Its kind, compute capability and shared memory; the rest is unknown.
  DeviceInfo device;

  bool is_cpu() const { return device.id.kind == DeviceKind::kCpu; }
};

/// Throws Error{kInvalidArgument} for what is not such a name.
Arch parse_arch(std::string_view text);

}  // namespace logpjit::cli
