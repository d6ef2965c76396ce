// Checks that read the device: ids and row numbers, when a call asks for it.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/device.hpp"
#include "runtime/operations/check.hpp"

namespace logpjit::runtime {

/// Error{kInvalidArgument} naming the first integer of `tensor` that is outside
/// [0, limit) and not `ignored`. Waits for the device; a tensor that is not
/// given is passed over.
void check_range(std::string_view op, Device& device, const Named& tensor,
                 std::int64_t limit, std::int64_t ignored);

}  // namespace logpjit::runtime
