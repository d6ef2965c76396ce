// Ids of a row: which are live, and the logits they point at.
#pragma once

#include "common/state.cuh"

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

/// A number for a row's id: where the row is taken for its ids alone its only
/// one is live, and V is at most 2^30.
template <int kTerms>
struct HeldId {
  using Number = i64;
};
template <>
struct HeldId<kTermLogp> {
  using Number = i32;
};

/// The only id of a row and its logit, in thread 0 and each well before it is
/// needed: a sweep and a fold hide that both come from memory. Nothing where a
/// row has several ids, or none matters.
template <typename Logit, typename Id, i64 kVocab, int kTerms, bool kManyIds>
struct OnlyTarget {
  using Number = typename HeldId<kTerms>::Number;
  static constexpr bool kOnlyId = (kTerms & kTermLogp) != 0 && !kManyIds;

  Number id = -1;
  Logit logit{};
  int thread;

  LOGPJIT_DEVICE OnlyTarget(const VectorArgument& ids, RowPosition at,
                            int number)
      : thread(number) {
    if constexpr (kOnlyId) {
      if (thread == 0) id = static_cast<Number>(load_id<Id>(ids, at, 0));
    }
  }

  LOGPJIT_DEVICE void load(const Logit* row) {
    if constexpr (kOnlyId) {
      if (thread == 0 && is_live<kVocab>(id)) logit = row[id];
    }
  }
};

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
