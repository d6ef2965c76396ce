// What the checks of a call make of it.
#pragma once

#include <string_view>

#include "logpjit/kernel_spec.hpp"
#include "runtime/operations/row_space.hpp"

namespace logpjit::runtime {

/// A call's rows, its kernel, and what the kernel is given. Not an aggregate:
/// the compiler would clear it as a whole first, footprint and all.
template <typename Arguments>
struct CheckedCall {
  /// `logits` are a checked matrix.
  CheckedCall(std::string_view op, DeviceId device, const Named& logits,
              const TensorView& row_index)
      : space(op, device, logits, row_index) {}

  RowSpace space;
  KernelSpec spec{};
  Arguments arguments{};
};

}  // namespace logpjit::runtime
