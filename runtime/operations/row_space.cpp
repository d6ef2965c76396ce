// Leading dimensions and strides.
#include "runtime/operations/row_space.hpp"

#include <fmt/format.h>

namespace logpjit::runtime {
namespace {

/// What strides that no row uses come to is of no interest.
std::int64_t times(std::int64_t stride, std::int64_t rows) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) *
                                   static_cast<std::uint64_t>(rows));
}

}  // namespace

RowSpace::RowSpace(std::string_view op, DeviceId device, const Named& logits,
                   const TensorView& row_index)
    : op_(op), device_(device) {
  if (logits.tensor.rank == 3) {
    outer_is_batch_ = true;
    outer_ = logits.tensor.shape[0];
    inner_ = logits.tensor.shape[1];
  } else {
    inner_ = logits.tensor.shape[0];
  }
  note_read(logits);
  if (__builtin_mul_overflow(outer_, inner_, &rows_)) {
    refuse(op_, logits.name,
           fmt::format("{} times {} rows are more than 64 bits can count",
                       outer_, inner_));
  }
  if (row_index.given()) {
    const Named named{"row_index", row_index};
    check_tensor(op_, device, named);
    check_dtype(op_, named, {DType::kInt64});
    check_contiguous(op_, named);
    if (row_index.rank != 1) refuse(op_, "row_index", "is not one-dimensional");
    note_read(named);
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
  if (flat) {
    return {.outer = times(tensor.strides[0], inner_),
            .inner = tensor.strides[0]};
  }
  RowStrides strides{.outer = tensor.strides[0], .inner = tensor.strides[1]};
  if (inner_ == 1) strides.inner = strides.outer;
  one_stride_ = one_stride_ && (outer_ <= 1 || inner_ == 1 ||
                                strides.outer == times(strides.inner, inner_));
  return strides;
}

void RowSpace::check_contiguous_vector(const Named& argument, DType dtype,
                                       int trailing) {
  check_tensor(op_, device_, argument);
  check_dtype(op_, argument, {dtype});
  check_contiguous(op_, argument);
  add_vector(argument.name, argument.tensor, trailing);
}

RowStrides RowSpace::check_vector(const Named& input, DType dtype,
                                  int trailing) {
  check_tensor(op_, device_, input);
  check_dtype(op_, input, {dtype});
  const RowStrides strides = add_vector(input.name, input.tensor, trailing);
  note_read(input);
  return strides;
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
