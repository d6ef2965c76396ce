// One block, one row: where it lies, and sums over its threads.
#pragma once

#include "common/fallback_matrix.cuh"
#include "common/rows.cuh"

namespace logpjit::device {

/// The row of a call that this block works on.
struct FallbackPlace {
  i64 row;               ///< of the call
  RowPosition position;  ///< of its per-row values
  bool listed;           ///< false: its index is out of range
  RowPosition storage;   ///< of its logits
};

LOGPJIT_DEVICE FallbackPlace fallback_place(const FallbackCall& call,
                                            const RowsArgument& rows) {
  FallbackPlace place{call.first_row + block_index(), {}, true, {}};
  if (rows.index == nullptr) {
    place.position = row_position<kRowsStrided2>(place.row, rows.inner_rows);
    place.storage = place.position;
    return place;
  }
  place.position = vector_position<kRowsIndexed>(place.row, rows.inner_rows);
  const i64 storage = storage_row<kRowsIndexed>(rows, place.row);
  place.listed = storage >= 0;
  place.storage = row_position<kRowsStrided2>(storage, rows.inner_rows);
  return place;
}

/// Id `k` of a row, of either type.
LOGPJIT_DEVICE i64 any_type_id(const VectorArgument& ids, int dtype,
                               RowPosition at, i64 k) {
  const i64 offset = element_offset(ids, at) + k * ids.item_stride;
  return dtype == kInt64 ? static_cast<const i64*>(ids.data)[offset]
                         : static_cast<const i32*>(ids.data)[offset];
}

/// A sum that carries what its additions round away.
struct CarriedSum {
  float sum = 0.0f;
  float lost = 0.0f;

  LOGPJIT_DEVICE void add(float value) {
    const float corrected = value - lost;
    const float next = sum + corrected;
    lost = (next - sum) - corrected;
    sum = next;
  }
};

/// Combines `kCount` values of every thread in a fixed order; every thread gets
/// the results. `combine(i, a, b)` is symmetric. Dynamic shared memory from
/// `base` on holds kCount floats a thread.
template <int kCount, typename Combine>
LOGPJIT_DEVICE void fold_block(float (&values)[kCount], float* base, int thread,
                               Combine&& combine) {
  LOGPJIT_UNROLL
  for (int i = 0; i < kCount; ++i) {
    base[i * kFallbackBlock + thread] = values[i];
  }
  sync_threads();
  if (thread < 32) {
    LOGPJIT_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const float* own = base + i * kFallbackBlock + thread;
      float total = own[0];
      for (int at = 32; at < kFallbackBlock; at += 32) {
        total = combine(i, total, own[at]);
      }
      LOGPJIT_UNROLL
      for (int mask = 1; mask < 32; mask *= 2) {
        total = combine(i, total, shuffle_xor(total, mask));
      }
      values[i] = total;
    }
    sync_warp();
    if (thread == 0) {
      LOGPJIT_UNROLL
      for (int i = 0; i < kCount; ++i) base[i * kFallbackBlock] = values[i];
    }
  }
  sync_threads();
  LOGPJIT_UNROLL
  for (int i = 0; i < kCount; ++i) values[i] = base[i * kFallbackBlock];
  sync_threads();
}

/// Calls `body(first column)` for this thread's groups of a row.
template <typename Body>
LOGPJIT_DEVICE void for_each_group(i64 vocab, int thread, Body&& body) {
  constexpr i64 kStep = static_cast<i64>(kFallbackBlock) * kGroup;
  for (i64 first = static_cast<i64>(thread) * kGroup; first < vocab;
       first += kStep) {
    body(first);
  }
}

}  // namespace logpjit::device
