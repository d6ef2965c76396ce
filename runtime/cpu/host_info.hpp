// What this machine is: read once from the system.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "logpjit/device.hpp"

namespace logpjit::runtime {

/// As many as this process may run at once.
int available_threads();

/// "x86_64-linux", or "x86_64-v3-linux" where the CPU has AVX2 and FMA.
std::string host_target();
/// All that a CPU of this machine's kind may be.
std::vector<std::string> host_targets();

/// `threads` is what the device uses.
DeviceInfo describe_host(int threads);

/// Memory the system can still give out.
std::size_t available_memory();

}  // namespace logpjit::runtime
