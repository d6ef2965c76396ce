// Leading dimensions and strides.
#include "runtime/operations/row_space.hpp"

#include <fmt/format.h>

namespace logpjit::runtime {

RowSpace::RowSpace(std::string_view op, DeviceId device,
                   const TensorView& logits, const TensorView& row_index)
    : op_(op) {
  if (logits.rank == 3) {
    outer_is_batch_ = true;
    outer_ = logits.shape[0];
    inner_ = logits.shape[1];
  } else {
    inner_ = logits.shape[0];
  }
  rows_ = outer_ * inner_;
  if (row_index.given()) {
    const Named named{"row_index", row_index};
    check_tensor(op_, device, named);
    check_dtype(op_, named, {DType::kInt64});
    check_contiguous(op_, named);
    if (row_index.rank != 1) refuse(op_, "row_index", "is not one-dimensional");
    rows_ = row_index.shape[0];
    index_ = static_cast<const long long*>(row_index.data);
  }
}

bool RowSpace::is_vector(const TensorView& tensor) const {
  if (tensor.rank == 1) return true;
  return tensor.rank == 2 && index_ == nullptr && outer_is_batch_ &&
         tensor.shape[0] == outer_ && tensor.shape[1] == inner_;
}

RowStrides RowSpace::add(const TensorView& tensor, bool flat) {
  if (flat)
    return {.outer = tensor.strides[0] * inner_, .inner = tensor.strides[0]};
  RowStrides strides{.outer = tensor.strides[0], .inner = tensor.strides[1]};
  if (inner_ == 1) strides.inner = strides.outer;
  one_stride_ = one_stride_ && (outer_ <= 1 || inner_ == 1 ||
                                strides.outer == inner_ * strides.inner);
  return strides;
}

void RowSpace::check_and_add(DeviceId device, const Named& argument,
                             DType dtype, int trailing) {
  check_tensor(op_, device, argument);
  check_dtype(op_, argument, {dtype});
  check_contiguous(op_, argument);
  add_vector(argument.name, argument.tensor, trailing);
}

RowStrides RowSpace::add_matrix(std::string_view name,
                                const TensorView& tensor) {
  const bool flat = tensor.rank == 2;
  const bool fits =
      flat ? tensor.shape[0] == outer_ * inner_
           : tensor.shape[0] == outer_ && tensor.shape[1] == inner_;
  if (!fits) {
    refuse(op_, name,
           fmt::format("leading dimensions differ from the logits' "
                       "{} rows",
                       outer_ * inner_));
  }
  return add(tensor, flat);
}

RowStrides RowSpace::add_vector(std::string_view name, const TensorView& tensor,
                                int trailing) {
  const int leading = tensor.rank - trailing;
  const bool flat = leading == 1;
  const bool fits = flat ? tensor.shape[0] == rows_
                         : leading == 2 && index_ == nullptr &&
                               tensor.shape[0] == outer_ &&
                               tensor.shape[1] == inner_;
  if (!fits) {
    refuse(op_, name,
           fmt::format("leading dimensions do not match the call's {} rows",
                       rows_));
  }
  return add(tensor, flat);
}

RowMap RowSpace::map() const {
  if (index_ != nullptr) return RowMap::kIndexed;
  return one_stride_ ? RowMap::kStrided : RowMap::kStrided2;
}

}  // namespace logpjit::runtime
