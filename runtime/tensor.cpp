// Shapes and strides of tensor views.
#include "logpjit/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "logpjit/error.hpp"

namespace logpjit {
namespace {

void check_rank(std::initializer_list<std::int64_t> shape) {
  if (shape.size() >= 1 && shape.size() <= TensorView::kMaxRank) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("shape [{}] has {} dimensions: a tensor view takes 1 "
                  "to {}",
                  fmt::join(shape, ", "), shape.size(), TensorView::kMaxRank));
}

void check_dimensions(std::initializer_list<std::int64_t> shape) {
  for (const std::int64_t dimension : shape) {
    if (dimension >= 0) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("shape [{}] has the dimension {}: dimensions are 0 "
                            "or more",
                            fmt::join(shape, ", "), dimension));
  }
}

/// False where the product does not fit.
bool multiply(std::int64_t& product, std::int64_t factor) {
  return !__builtin_mul_overflow(product, factor, &product);
}

}  // namespace

TensorView TensorView::contiguous(const void* data, DType dtype,
                                  std::initializer_list<std::int64_t> shape,
                                  DeviceId device) {
  check_rank(shape);
  check_dimensions(shape);
  TensorView view;
  // Whether a view is written is the operation's promise, not the pointer's.
  view.data = const_cast<void*>(data);
  view.dtype = dtype;
  view.rank = static_cast<int>(shape.size());
  view.device = device;
  std::copy(shape.begin(), shape.end(), view.shape.begin());
  std::int64_t stride = 1;
  bool fits = true;
  for (int i = view.rank - 1; i >= 0; --i) {
    view.strides[i] = stride;
    fits = fits && multiply(stride, std::max<std::int64_t>(view.shape[i], 1));
  }
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  if (!fits || !multiply(stride, bytes)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("shape [{}] of {} is larger than 64 bits can count",
                            fmt::join(shape, ", "), name(dtype)));
  }
  return view;
}

std::int64_t TensorView::leading(int trailing) const {
  std::int64_t product = 1;
  for (int i = 0; i < rank - trailing; ++i) {
    if (!multiply(product, shape[i])) {
      throw Error(ErrorCode::kInvalidArgument,
                  "a tensor view has more rows than 64 bits can count: check "
                  "its shape");
    }
  }
  return product;
}

}  // namespace logpjit
