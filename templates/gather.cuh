// Rows with any strides into contiguous ones: the copy that a caller may ask
// for when the vocabulary is not contiguous.
#pragma once

#include "common/arguments.cuh"
#include "common/rows.cuh"

namespace logpjit::device {

/// Copies row `block` of [outer, inner, columns], bit for bit.
template <int kBlock>
LOGPJIT_TUNE(kBlock, "256")
LOGPJIT_KERNEL(kBlock, 1)
gather_rows(const GatherArguments args) {
  const i64 n = block_index();
  const RowPosition at = row_position<kRowsStrided2>(n, args.inner_rows);
  const i64 from = at.outer * args.outer_stride + at.inner * args.inner_stride;
  const i64 to = n * args.row_length;
  for (i64 j = thread_index(); j < args.columns; j += kBlock) {
    const i64 source = from + j * args.column_stride;
    if (args.element_bytes == 2) {
      static_cast<u16*>(args.to)[to + j] =
          static_cast<const u16*>(args.from)[source];
    } else {
      static_cast<u32*>(args.to)[to + j] =
          static_cast<const u32*>(args.from)[source];
    }
  }
}

}  // namespace logpjit::device
