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

/// Ids and row numbers of a call over rows that wants them validated; `made` is
/// what its checks made of it.
template <typename Call, typename Made>
void validate_rows(std::string_view op, Device& device, const Call& call,
                   const Made& made) {
  if (!call.options.validate) return;
  check_range(op, device, {"ids", call.ids}, made.spec.vocab, call.ignore_id);
  check_range(op, device, {"row_index", call.row_index},
              made.arguments.rows.limit, 0);
}

}  // namespace logpjit::runtime
