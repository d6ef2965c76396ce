// What backward and fused calls share: upstream gradients and the gradient
// buffer.
#pragma once

#include <string_view>

#include "logpjit/kernel_spec.hpp"
#include "logpjit/operations.hpp"
#include "runtime/operations/check.hpp"
#include "runtime/operations/checked_call.hpp"
#include "runtime/operations/transform.hpp"

namespace logpjit::runtime {

/// Terms whose upstream gradient is given, each checked; fills `argument`.
Terms check_upstream(std::string_view op, const Upstream& upstream,
                     const IdsShape& ids, RowSpace& space,
                     device::UpstreamArgument& argument);

/// The gradient buffer against the logits: dtype and shape. In place it is
/// those that `space` was made of.
RowStrides check_gradient(std::string_view op, DeviceId device,
                          std::string_view name, const Gradient& gradient,
                          const TensorView& logits, RowSpace& space);

/// A checked backward call, for `backward` itself and for ranks that hold some
/// of the columns.
using RowGradientCall = CheckedCall<device::RowGradientArguments>;

/// Throws Error{kInvalidArgument} naming the member that is wrong.
RowGradientCall check_row_gradient(std::string_view op, DeviceId device,
                                   const RowBackward& call);

/// Whether logits and gradient rows start at the same place within 16 bytes.
bool lie_alike(const TensorView& logits, const TensorView& gradient);

}  // namespace logpjit::runtime
