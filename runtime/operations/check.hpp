// Checks at the boundary, before anything is launched. Each throws
// Error{kInvalidArgument} with the operation, the argument's name, what was
// expected and what came.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "logpjit/device.hpp"
#include "logpjit/tensor.hpp"
#include "runtime/operations/footprint.hpp"

namespace logpjit::runtime {

/// Throws: "<op>: <argument>: <what>".
[[noreturn]] void refuse(std::string_view op, std::string_view argument,
                         std::string_view what);

inline bool is_element_aligned(const TensorView& tensor) {
  // Sizes are powers of 2; the compiler would divide.
  return (reinterpret_cast<std::uintptr_t>(tensor.data) &
          (size_of(tensor.dtype) - 1)) == 0;
}
/// Whether no general check can find fault with the tensor.
inline bool is_sound(const TensorView& tensor, DeviceId device) {
  bool sound = tensor.given() && tensor.rank <= TensorView::kMaxRank &&
               tensor.device == device && tensor.data != nullptr &&
               is_element_aligned(tensor);
  for (int i = 0; sound && i < tensor.rank; ++i) sound = tensor.shape[i] > 0;
  return sound;
}
/// What the checks below throw, found slowly; nothing where all is well.
void find_fault(std::string_view op, DeviceId device, const Named& argument);
void find_matrix_fault(std::string_view op, DeviceId device,
                       const Named& argument);
[[noreturn]] void refuse_dtype(std::string_view op, const Named& argument,
                               std::initializer_list<DType> allowed);

/// What holds for every tensor of a call: on the device, not null, aligned to
/// its elements, sizes not negative.
inline void check_tensor(std::string_view op, DeviceId device,
                         const Named& argument) {
  if (!is_sound(argument.tensor, device)) find_fault(op, device, argument);
}
inline void check_dtype(std::string_view op, const Named& argument,
                        std::initializer_list<DType> allowed) {
  for (const DType dtype : allowed) {
    if (argument.tensor.dtype == dtype) return;
  }
  refuse_dtype(op, argument, allowed);
}
/// Logits, teacher and gradients: floating point, [N, V] or [B, S, V], V above
/// 0. Strides are not looked at.
void check_matrix_form(std::string_view op, DeviceId device,
                       const Named& argument);
/// The same with a unit stride along V (Error{kUnsupported} with advice
/// otherwise).
inline void check_matrix(std::string_view op, DeviceId device,
                         const Named& argument) {
  const TensorView& tensor = argument.tensor;
  const bool sound =
      (tensor.rank == 2 || tensor.rank == 3) && is_float(tensor.dtype) &&
      tensor.strides[tensor.rank - 1] == 1 && is_sound(tensor, device);
  if (!sound) find_matrix_fault(op, device, argument);
}
void check_contiguous(std::string_view op, const Named& argument);
/// Whether a tensor is what most per-row outputs are, so that no check can find
/// fault with it: [rows], contiguous, of this dtype. Not where its end is far
/// beyond what plain arithmetic can say.
inline bool is_plain_vector(const TensorView& tensor, DType dtype,
                            std::int64_t rows, DeviceId device) {
  constexpr std::int64_t kFew = std::int64_t{1} << 48;
  constexpr auto kLast = ~std::uintptr_t{0} - kFew * 8;
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  return tensor.rank == 1 && tensor.shape[0] == rows && rows > 0 &&
         rows < kFew && (tensor.strides[0] == 1 || rows == 1) &&
         tensor.dtype == dtype && tensor.device == device && address != 0 &&
         address < kLast && is_element_aligned(tensor);
}
void check_finite_positive(std::string_view op, std::string_view argument,
                           double value);

/// No output may share bytes with another output or with an input. Tensors that
/// are not given are passed over. Allocates nothing.
void check_no_overlap(std::string_view op, std::initializer_list<Named> outputs,
                      std::initializer_list<Named> inputs);

/// Whether every row of the matrix starts at a multiple of 16 bytes.
bool is_aligned(const TensorView& matrix);

}  // namespace logpjit::runtime
