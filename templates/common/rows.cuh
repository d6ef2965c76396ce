// Row numbers to addresses, 64 bits throughout.
#pragma once

#include "common/arguments.cuh"

namespace logpjit::device {

/// Values of the row-map template parameter, as in logpjit::RowMap.
constexpr int kRowsStrided = 0;
constexpr int kRowsStrided2 = 1;
constexpr int kRowsIndexed = 2;

/// A row number split into the two dimensions of a [B, S, V] view.
struct RowPosition {
  i64 outer;
  i64 inner;
};

template <int kRows>
LOGPJIT_DEVICE RowPosition row_position(i64 row, i64 inner_rows) {
  if constexpr (kRows == kRowsStrided) {
    return {0, row};
  } else {
    const i64 outer = row / inner_rows;
    return {outer, row - outer * inner_rows};
  }
}

LOGPJIT_DEVICE i64 element_offset(const RowsArgument& rows, RowPosition at) {
  return at.outer * rows.outer_stride + at.inner * rows.inner_stride;
}
LOGPJIT_DEVICE i64 element_offset(const VectorArgument& vector,
                                  RowPosition at) {
  return at.outer * vector.outer_stride + at.inner * vector.inner_stride;
}

/// Where row `at` of a matrix begins.
template <typename T>
LOGPJIT_DEVICE const T* row_begin(const void* matrix, const RowsArgument& rows,
                                  RowPosition at) {
  return static_cast<const T*>(matrix) + element_offset(rows, at);
}
template <typename T>
LOGPJIT_DEVICE T* row_begin(void* matrix, const RowsArgument& rows,
                            RowPosition at) {
  return static_cast<T*>(matrix) + element_offset(rows, at);
}

/// The row of storage that row `row` of the call works on; -1 when an index is
/// out of range.
template <int kRows>
LOGPJIT_DEVICE i64 storage_row(const RowsArgument& rows, i64 row) {
  if constexpr (kRows == kRowsIndexed) {
    const i64 mapped = rows.index[row];
    return mapped >= 0 && mapped < rows.limit ? mapped : -1;
  } else {
    return row;
  }
}

/// Per-row vectors follow the call's rows, not the index.
template <int kRows>
LOGPJIT_DEVICE RowPosition vector_position(i64 row, i64 inner_rows) {
  if constexpr (kRows == kRowsIndexed) {
    return {0, row};
  } else {
    return row_position<kRows>(row, inner_rows);
  }
}

LOGPJIT_DEVICE float row_scalar(const VectorArgument& vector, RowPosition at) {
  return static_cast<const float*>(vector.data)[element_offset(vector, at)];
}

}  // namespace logpjit::device
