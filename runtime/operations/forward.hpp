// A checked forward call, for `forward` itself and for calls that contain one.
#pragma once

#include <string_view>

#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "runtime/operations/row_space.hpp"
#include "runtime/operations/transform.hpp"

namespace logpjit::runtime {

struct RowValuesCall {
  RowSpace space;
  KernelSpec spec{};  ///< all but `rows`, which later tensors may change
  device::RowStatisticsArguments arguments{};
  IdsShape ids{};
};

/// Throws Error{kInvalidArgument} naming the member that is wrong.
RowValuesCall check_values(std::string_view op, DeviceId device,
                           const RowForward& call);

}  // namespace logpjit::runtime
