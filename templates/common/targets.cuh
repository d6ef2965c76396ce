// Ids of a row: which are live, and the logits they point at.
#pragma once

#include "common/dtype.cuh"
#include "common/rows.cuh"

namespace logpjit::device {

/// An id outside [0, V) is ignored: value 0, gradient 0, never read through.
template <i64 kVocab>
LOGPJIT_DEVICE bool is_live(i64 id) {
  return id >= 0 && id < kVocab;
}

template <typename Id>
LOGPJIT_DEVICE i64 load_id(const VectorArgument& ids, RowPosition at, i64 k) {
  const i64 offset = element_offset(ids, at) + k * ids.item_stride;
  return static_cast<i64>(static_cast<const Id*>(ids.data)[offset]);
}

/// True in every thread of the block when any of the row's ids is live. Several
/// ids are voted on: a word of shared memory a warp, two barriers.
template <typename Id, i64 kVocab, bool kManyIds, int kBlock>
LOGPJIT_DEVICE bool any_live(const VectorArgument& ids, i64 ids_per_row,
                             RowPosition at, int thread) {
  if constexpr (!kManyIds) {
    return is_live<kVocab>(load_id<Id>(ids, at, 0));
  } else {
    u32* votes = shared_memory<u32>(0);
    bool mine = false;
    LOGPJIT_NO_UNROLL
    for (i64 k = thread; k < ids_per_row; k += kBlock) {
      mine = mine || is_live<kVocab>(load_id<Id>(ids, at, k));
    }
    const u32 vote = ballot(mine);
    if (thread % 32 == 0) votes[thread / 32] = vote;
    sync_threads();
    u32 all = 0;
    LOGPJIT_UNROLL
    for (int warp = 0; warp < kBlock / 32; ++warp) all |= votes[warp];
    sync_threads();
    return all != 0;
  }
}

}  // namespace logpjit::device
