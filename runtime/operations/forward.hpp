// A checked forward call, for `forward` itself and for calls that contain one.
#pragma once

#include <string_view>

#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "runtime/operations/checked_call.hpp"
#include "runtime/operations/transform.hpp"

namespace logpjit::runtime {

/// Of `spec` all but `rows`, which later tensors may change.
struct RowValuesCall : CheckedCall<device::RowStatisticsArguments> {
  using CheckedCall::CheckedCall;
  IdsShape ids{};
};

/// Throws Error{kInvalidArgument} naming the member that is wrong.
RowValuesCall check_values(std::string_view op, DeviceId device,
                           const RowForward& call);

}  // namespace logpjit::runtime
