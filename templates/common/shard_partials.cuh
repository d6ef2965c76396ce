// Reading and writing the partial results of ranks.
#pragma once

#include "common/arguments.cuh"
#include "common/dtype.cuh"
#include "common/store.cuh"

namespace logpjit::device {

/// One rank's partials of a block of rows.
template <typename Fold, bool kSegments>
struct ShardPartials {
  static constexpr int kInRecord = kSegments ? 0 : Fold::kMembers;

  unsigned char* base;
  i64 rows;
  i64 picked;
  i64 slots;

  LOGPJIT_DEVICE ShardHeader* header() const {
    return reinterpret_cast<ShardHeader*>(base);
  }
  LOGPJIT_DEVICE float* record(i64 row) const {
    return reinterpret_cast<float*>(base + kShardHeaderBytes) +
           row * (kInRecord + picked);
  }
  LOGPJIT_DEVICE float* picked_logits(i64 row) const {
    return record(row) + kInRecord;
  }
  /// Every lane's state after segment `slot` of the rank's.
  LOGPJIT_DEVICE StateStore<Fold> lanes(i64 row, i64 slot) const {
    unsigned char* first =
        base + shard_head_bytes(rows, Fold::kMembers, picked, slots);
    return {reinterpret_cast<float*>(first) +
                (row * slots + slot) * (Fold::kMembers * kLanes),
            kLanes};
  }

  LOGPJIT_DEVICE void put(i64 row, const typename Fold::State& state) const {
    Fold::write(state, record(row), 1,
                [](float* to, float member) { *to = member; });
  }
  LOGPJIT_DEVICE typename Fold::State get(i64 row) const {
    return Fold::read(record(row), 1);
  }
};

/// Block 0's thread 0 says who wrote the partials.
template <typename Partials>
LOGPJIT_DEVICE void write_header(const Partials& partials,
                                 const ShardArgument& shard, int thread) {
  if (block_index() != 0 || thread != 0) return;
  *partials.header() = ShardHeader{shard.digest, shard.begin, shard.end, 0};
}

/// The partials of all ranks.
template <typename Fold, bool kSegments>
struct GatheredPartials {
  using Partials = ShardPartials<Fold, kSegments>;

  unsigned char* base;
  i64 rank_bytes;
  i64 ranks;
  const ShardArgument& shard;

  LOGPJIT_DEVICE Partials of(i64 rank) const {
    return {base + rank * rank_bytes, shard.rows, shard.picked, shard.slots};
  }

  /// The rank that owns `column`; -1 when none does.
  LOGPJIT_DEVICE i64 owner(i64 column) const {
    for (i64 rank = 0; rank < ranks; ++rank) {
      const ShardHeader* header = of(rank).header();
      if (column >= header->begin && column < header->end) return rank;
    }
    return -1;
  }

  /// 1 + the first rank whose digest is not this call's; 0 when all agree.
  LOGPJIT_DEVICE u32 disagreement() const {
    for (i64 rank = 0; rank < ranks; ++rank) {
      if (of(rank).header()->digest != shard.digest) {
        return static_cast<u32>(rank + 1);
      }
    }
    return 0;
  }

  /// The ranks' states merged in rank order. Ranks without columns are passed
  /// over: they wrote none.
  LOGPJIT_DEVICE typename Fold::State merge(i64 row, const Fold& fold) const {
    typename Fold::State state = Fold::empty();
    bool first = true;
    for (i64 rank = 0; rank < ranks; ++rank) {
      const Partials part = of(rank);
      if (part.header()->begin == part.header()->end) continue;
      const typename Fold::State next = part.get(row);
      state = first ? next : fold.merge(state, next);
      first = false;
    }
    return state;
  }

  /// Every lane of the row into shared memory, its segments merged in their
  /// order, as a sweep of the whole row leaves them.
  template <i64 kGlobal>
  LOGPJIT_DEVICE void merge_lanes(i64 row, int thread, const Fold& fold) const {
    LOGPJIT_NO_UNROLL
    for (int segment = 0; segment * segment_columns(kGlobal) < kGlobal;
         ++segment) {
      const i64 column = segment * segment_columns(kGlobal);
      const Partials part = of(owner(column));
      const i64 slot =
          (column - part.header()->begin) / segment_columns(kGlobal);
      LOGPJIT_NO_UNROLL
      for (int lane = thread; lane < kLanes; lane += kMergeBlock) {
        typename Fold::State state = part.lanes(row, slot).get(lane);
        if (segment > 0)
          state = fold.merge(lane_store<Fold>().get(lane), state);
        lane_store<Fold>().put(lane, state);
      }
    }
  }
};

/// Copies the calling thread's lanes from shared memory.
template <typename Fold, int kBlock>
LOGPJIT_DEVICE void copy_lanes(const StateStore<Fold>& to, int thread) {
  LOGPJIT_NO_UNROLL
  for (int lane = thread; lane < kLanes; lane += kBlock) {
    to.put(lane, lane_store<Fold>().get(lane));
  }
}

}  // namespace logpjit::device
