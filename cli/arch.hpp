// Architectures that code can be made for without having one.
#pragma once

#include <string>
#include <string_view>

#include "logpjit/device.hpp"

namespace logpjit::cli {

/// A CUDA architecture "sm_90a", or "cpu": this machine's processor.
struct Arch {
  std::string name;
  DeviceInfo device;  ///< its kind and compute capability; the rest unknown

  bool is_cpu() const { return device.id.kind == DeviceKind::kCpu; }
};

/// Throws Error{kInvalidArgument} for what is not such a name.
Arch parse_arch(std::string_view text);

}  // namespace logpjit::cli
