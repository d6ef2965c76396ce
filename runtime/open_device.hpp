// Options to a device and its compiler.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "logpjit/options.hpp"
#include "runtime/compiler.hpp"
#include "runtime/device.hpp"

namespace logpjit::runtime {

/// "cpu", "cuda" or "cuda:<i>"; Error{kInvalidArgument} for anything else.
DeviceId parse_device(std::string_view text);

/// Error{kUnavailable} with the reason when the device is not there.
std::unique_ptr<Device> open_device(const Options& options);

/// The compiler for the device's kind; opens nothing yet, needs no device.
std::unique_ptr<Compiler> make_compiler(const Options& options);

/// All devices of this machine, and in `why_not` a sentence for each kind that
/// is not available.
std::vector<DeviceInfo> list_devices(const Options& options,
                                     std::vector<std::string>& why_not);

}  // namespace logpjit::runtime
