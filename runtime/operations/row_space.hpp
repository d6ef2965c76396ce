// The rows of a call: how [N], [B, S] and their strides become kernel
// arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "logpjit/kernel_spec.hpp"
#include "logpjit/tensor.hpp"
#include "runtime/operations/check.hpp"
#include "runtime/operations/footprint.hpp"
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
  /// Rows of `logits`, a checked matrix that the call named `op` reads.
  RowSpace(std::string_view op, DeviceId device, const Named& logits,
           const TensorView& row_index);

  std::int64_t rows() const { return rows_; }

  /// Strides of a tensor of rows: the logits' leading dimensions.
  RowStrides add_matrix(std::string_view name, const TensorView& tensor);

  /// Strides of a per-row tensor with `trailing` further dimensions. It has the
  /// call's leading dimensions, or is flat [N].
  RowStrides add_vector(std::string_view name, const TensorView& tensor,
                        int trailing);

  /// A contiguous tensor of `dtype` that the call reads or writes, checked and
  /// added; its data.
  const void* read_contiguous(const Named& input, DType dtype) {
    if (is_plain(input.tensor, dtype)) {
      footprint_.read(input.name, begin_of(input), end_of_plain(input));
    } else {
      check_contiguous_vector(input, dtype, 0);
      note_read(input);
    }
    return input.tensor.data;
  }
  void* write_contiguous(const Named& output, DType dtype, int trailing = 0) {
    if (trailing == 0 && is_plain(output.tensor, dtype)) {
      footprint_.write(output.name, begin_of(output), end_of_plain(output));
    } else {
      check_contiguous_vector(output, dtype, trailing);
      note_write(output);
    }
    return output.tensor.data;
  }
  /// Numbers that the call reads, of any strides, with `trailing` further
  /// dimensions.
  RowStrides read_vector(const Named& input, DType dtype, int trailing = 0) {
    if (trailing == 0 && is_plain(input.tensor, dtype)) {
      footprint_.read(input.name, begin_of(input), end_of_plain(input));
      return {.outer = inner_, .inner = 1};
    }
    return check_vector(input, dtype, trailing);
  }
  /// The same of fp32, one number a row.
  const float* read_floats(const Named& input) {
    return static_cast<const float*>(read_contiguous(input, DType::kFp32));
  }
  float* write_floats(const Named& output) {
    return static_cast<float*>(write_contiguous(output, DType::kFp32));
  }

  /// What else the call reads and writes, checked; and whether outputs keep
  /// clear of all that was noted.
  void note_read(const Named& input) {
    const Extent bytes = extent_of(op_, input);
    footprint_.read(input.name, bytes.begin, bytes.end);
  }
  void note_write(const Named& output) {
    const Extent bytes = extent_of(op_, output);
    footprint_.write(output.name, bytes.begin, bytes.end);
  }
  /// The same for a tensor that lies exactly over the first one read.
  void note_write_in_place(const Named& output) {
    footprint_.take_first_read();
    note_write(output);
  }
  void check_overlap() const { footprint_.check(op_); }

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
  static std::uintptr_t begin_of(const Named& argument) {
    return reinterpret_cast<std::uintptr_t>(argument.tensor.data);
  }
  std::uintptr_t end_of_plain(const Named& argument) const {
    return begin_of(argument) +
           static_cast<std::uintptr_t>(rows_) * size_of(argument.tensor.dtype);
  }
  bool is_plain(const TensorView& tensor, DType dtype) const {
    return is_plain_vector(tensor, dtype, rows_, device_);
  }
  void check_contiguous_vector(const Named& argument, DType dtype,
                               int trailing);
  RowStrides check_vector(const Named& input, DType dtype, int trailing);
  RowStrides add(const TensorView& tensor, bool flat);

  std::string_view op_;
  DeviceId device_;
  std::int64_t outer_ = 1;  ///< of the storage: B
  std::int64_t inner_ = 0;  ///< of the storage: S, or N
  std::int64_t rows_ = 0;   ///< of the call
  const long long* index_ = nullptr;
  bool outer_is_batch_ = false;  ///< logits are [B, S, V]
  bool one_stride_ = true;
  Footprint footprint_;
};

}  // namespace logpjit::runtime
