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

  LOGPJIT_DEVICE double value() const {
    return static_cast<double>(sum) - static_cast<double>(lost);
  }

  LOGPJIT_DEVICE void add(float value) {
    const float corrected = value - lost;
    const float next = sum + corrected;
    lost = (next - sum) - corrected;
    sum = next;
  }
};

/// Sum of eight terms, pairwise.
LOGPJIT_DEVICE float sum_of_group(const float (&x)[kGroup]) {
  return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/// Combines `kCount` values of every thread in a fixed order; every thread gets
/// the results. Sums are folded as doubles, maxima as floats.
template <typename T, int kCount, typename Combine>
LOGPJIT_DEVICE void fold_block(T (&values)[kCount], int thread,
                               Combine&& combine) {
  T* base = shared_memory<T>(kFallbackFoldOffset);
  LOGPJIT_UNROLL
  for (int i = 0; i < kCount; ++i) {
    base[i * kFallbackBlock + thread] = values[i];
  }
  sync_threads();
  if (thread < 32) {
    LOGPJIT_UNROLL
    for (int i = 0; i < kCount; ++i) {
      T* own = base + i * kFallbackBlock + thread;
      T total = own[0];
      for (int at = 32; at < kFallbackBlock; at += 32) {
        total = combine(i, total, own[at]);
      }
      own[0] = total;
    }
  }
  sync_threads();
  LOGPJIT_UNROLL
  for (int i = 0; i < kCount; ++i) {
    values[i] = base[i * kFallbackBlock];
    for (int at = 1; at < 32; ++at) {
      values[i] = combine(i, values[i], base[i * kFallbackBlock + at]);
    }
  }
  sync_threads();
}

/// Calls `body(first column, eight logits)` for this thread's groups of a row,
/// in order. `kFlight` of them are loaded before the first is used.
template <int kFlight, typename Body>
LOGPJIT_DEVICE void for_each_group(const AnyTypeRow& row, i64 vocab, int thread,
                                   Body&& body) {
  constexpr i64 kStep = static_cast<i64>(kFallbackBlock) * kGroup;
  i64 first = static_cast<i64>(thread) * kGroup;
  if constexpr (kFlight > 1) {
    LOGPJIT_NO_UNROLL
    for (; first + (kFlight - 1) * kStep + kGroup <= vocab;
         first += kFlight * kStep) {
      float x[kFlight][kGroup];
      row.load_groups(first, kStep, x);
      LOGPJIT_UNROLL
      for (int i = 0; i < kFlight; ++i) body(first + i * kStep, x[i]);
    }
  }
  LOGPJIT_NO_UNROLL
  for (; first < vocab; first += kStep) {
    float x[kGroup];
    row.load(first, vocab, x);
    body(first, x);
  }
}

/// The same for two rows at once.
template <typename Body>
LOGPJIT_DEVICE void for_each_pair(const AnyTypeRow& a, const AnyTypeRow& b,
                                  i64 vocab, int thread, Body&& body) {
  constexpr i64 kStep = static_cast<i64>(kFallbackBlock) * kGroup;
  LOGPJIT_NO_UNROLL
  for (i64 first = static_cast<i64>(thread) * kGroup; first < vocab;
       first += kStep) {
    float x[kGroup];
    float y[kGroup];
    a.load(first, vocab, x);
    b.load(first, vocab, y);
    body(first, x, y);
  }
}

}  // namespace logpjit::device
