// The rows of a call: how [N], [B, S] and their strides become kernel
// arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "logpjit/kernel_spec.hpp"
#include "logpjit/tensor.hpp"
#include "runtime/operations/check.hpp"
#include "templates/common/arguments.cuh"

namespace logpjit::runtime {

/// Strides of one tensor over the call's rows, in elements.
struct RowStrides {
  std::int64_t outer = 0;
  std::int64_t inner = 0;
};

/// The rows of a call as [outer, inner]; plain rows are [1, N].
class RowSpace {
 public:
  /// Rows of `logits`, [N, V] or [B, S, V], for the call named `op`.
  RowSpace(std::string_view op, DeviceId device, const TensorView& logits,
           const TensorView& row_index);

  std::int64_t rows() const { return rows_; }

  /// Strides of a tensor of rows: the logits' leading dimensions.
  RowStrides add_matrix(std::string_view name, const TensorView& tensor);

  /// Strides of a per-row tensor with `trailing` further dimensions. It has the
  /// call's leading dimensions, or is flat [N].
  RowStrides add_vector(std::string_view name, const TensorView& tensor,
                        int trailing);

  /// A contiguous tensor of `dtype`, checked and added; its data.
  void* add_contiguous(DeviceId device, const Named& argument, DType dtype,
                       int trailing = 0) {
    if (trailing != 0 ||
        !is_plain_vector(argument.tensor, dtype, rows_, device)) {
      check_and_add(device, argument, dtype, trailing);
    }
    return argument.tensor.data;
  }
  /// The same of fp32, one number a row.
  float* add_floats(DeviceId device, const Named& argument) {
    return static_cast<float*>(add_contiguous(device, argument, DType::kFp32));
  }

  /// Whether the tensor has the call's leading dimensions and no more.
  bool is_vector(const TensorView& tensor) const;

  /// Map that serves everything that was added: kStrided as long as one stride
  /// is enough for each.
  RowMap map() const;

  device::RowsArgument rows_argument(RowStrides strides) const {
    return {.inner_rows = inner_,
            .outer_stride = strides.outer,
            .inner_stride = strides.inner,
            .index = index_,
            .limit = outer_ * inner_};
  }
  static device::VectorArgument vector_argument(const TensorView& tensor,
                                                RowStrides strides,
                                                std::int64_t item_stride = 0) {
    return {.data = tensor.data,
            .outer_stride = strides.outer,
            .inner_stride = strides.inner,
            .item_stride = item_stride};
  }

 private:
  void check_and_add(DeviceId device, const Named& argument, DType dtype,
                     int trailing);
  RowStrides add(const TensorView& tensor, bool flat);

  std::string_view op_;
  std::int64_t outer_ = 1;  ///< of the storage: B
  std::int64_t inner_ = 0;  ///< of the storage: S, or N
  std::int64_t rows_ = 0;   ///< of the call
  const long long* index_ = nullptr;
  bool outer_is_batch_ = false;  ///< logits are [B, S, V]
  bool one_stride_ = true;
};

}  // namespace logpjit::runtime
