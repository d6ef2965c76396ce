// Checks at the boundary, before anything is launched. Each throws
// Error{kInvalidArgument} with the operation, the argument's name, what was
// expected and what came.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "logpjit/device.hpp"
#include "logpjit/tensor.hpp"

namespace logpjit::runtime {

/// Throws: "<op>: <argument>: <what>".
[[noreturn]] void refuse(std::string_view op, std::string_view argument,
                         std::string_view what);

/// A tensor under its name.
struct Named {
  std::string_view name;
  const TensorView& tensor;
};

/// What holds for every tensor of a call: on the device, not null, aligned to
/// its elements, sizes not negative.
void check_tensor(std::string_view op, DeviceId device, Named argument);
void check_dtype(std::string_view op, Named argument,
                 std::initializer_list<DType> allowed);
/// Logits, teacher and gradients: floating point, [N, V] or [B, S, V], V above
/// 0. Strides are not looked at.
void check_matrix_form(std::string_view op, DeviceId device, Named argument);
/// The same with a unit stride along V (Error{kUnsupported} with advice
/// otherwise).
void check_matrix(std::string_view op, DeviceId device, Named argument);
void check_contiguous(std::string_view op, Named argument);
void check_finite_positive(std::string_view op, std::string_view argument,
                           double value);

/// No output may share bytes with another output or with an input. Tensors that
/// are not given are passed over. Allocates nothing.
void check_no_overlap(std::string_view op, std::initializer_list<Named> outputs,
                      std::initializer_list<Named> inputs);

/// Whether every row of the matrix starts at a multiple of 16 bytes.
bool is_aligned(const TensorView& matrix);

}  // namespace logpjit::runtime
