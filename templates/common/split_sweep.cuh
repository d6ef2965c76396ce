// A row swept by a cluster: lanes dealt out to blocks, segments to threads.
#pragma once

#include "common/any_offset.cuh"
#include "common/results.cuh"
#include "common/tree.cuh"

namespace logpjit::device {

template <typename Logit, i64 kVocab, int kTerms, bool kAligned, bool kSoftcap,
          int kSplit, int kParts>
struct SplitSweep {
  using Fold = RowFold<kTerms>;
  using Row = AnyRow<Logit, kAligned>;
  static constexpr int kOwnLanes = kLanes / kSplit;
  static constexpr int kSegments = segment_count(kVocab);
  static constexpr int kTiles = segment_tiles(kVocab);
  /// Groups that a thread has in flight.
  static constexpr int kDeep = kTiles < 8 ? kTiles : 8;
  static constexpr i32 kVectorGroups = vector_groups<kAligned>(kVocab);
  static_assert(kOwnLanes * kParts >= 256 && kParts <= kSegments);

  Row row;
  const RowScale& scale;
  int rank;
  int thread;

  LOGPJIT_DEVICE int own_lane() const { return thread % kOwnLanes; }

  /// Every lane of the row, in the shared memory of block 0.
  LOGPJIT_DEVICE static StateStore<Fold> all_lanes() {
    return {shared_memory<float>(tree_states(256) * Fold::kMembers * 4),
            kLanes};
  }
  /// This block's lanes of each segment.
  LOGPJIT_DEVICE static StateStore<Fold> segments() {
    constexpr int kAt = (tree_states(256) + kLanes) * Fold::kMembers * 4;
    return {shared_memory<float>(kAt), kOwnLanes * kSegments};
  }

  LOGPJIT_DEVICE i32 group_of(i32 tile) const {
    return tile * kLanes + rank * kOwnLanes + own_lane();
  }

  LOGPJIT_DEVICE void take_capped(RowState& lane, float (&x)[kGroup],
                                  i32 group) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kGroup; ++i) x[i] = capped<kSoftcap>(x[i], scale);
    take<kTerms>(lane, x, group, scale.to_log2);
  }

  LOGPJIT_DEVICE RowState sweep_segment(int segment) const {
    RowState lane = empty_state();
    const i32 begin = segment * kTiles;
    const i32 limit = begin + kTiles;
    const i32 end = limit < tile_count(kVocab) ? limit : tile_count(kVocab);
    LOGPJIT_NO_UNROLL
    for (i32 tile = begin; tile < end; tile += kDeep) {
      Word raw[kDeep][Row::kWords];
      LOGPJIT_UNROLL
      for (int i = 0; i < kDeep; ++i) {
        if (tile + i < end && group_of(tile + i) < kVectorGroups) {
          row.load(group_of(tile + i), raw[i]);
        }
      }
      LOGPJIT_UNROLL
      for (int i = 0; i < kDeep; ++i) {
        const i32 group = group_of(tile + i);
        if (tile + i >= end || group >= group_count(kVocab)) continue;
        float x[kGroup];
        if (group < kVectorGroups) {
          row.unpack(raw[i], x);
        } else {
          load_columns<Logit, kVocab>(row.row, group, x);
        }
        take_capped(lane, x, group);
      }
    }
    return lane;
  }

  /// Sweeps the row and brings every lane to block 0. All threads of the
  /// cluster call it.
  LOGPJIT_DEVICE void gather(const Fold& fold) const {
    constexpr int kEach = kSegments / kParts;
    const int part = thread / kOwnLanes;
    LOGPJIT_NO_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const int segment = part * kEach + i;
      segments().put(segment * kOwnLanes + own_lane(), sweep_segment(segment));
    }
    sync_cluster();  // block 0 may be written to once it has started
    if (thread < kOwnLanes) {
      RowState lane = segments().get(own_lane());
      LOGPJIT_NO_UNROLL
      for (int segment = 1; segment < kSegments; ++segment) {
        lane =
            fold.merge(lane, segments().get(segment * kOwnLanes + own_lane()));
      }
      all_lanes().put_at(0, rank * kOwnLanes + own_lane(), lane);
    }
    sync_cluster();
  }

  /// In block 0: the lanes that a thread of 256 holds.
  LOGPJIT_DEVICE void lanes_of(RowState (&lanes)[4]) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < 4; ++i) {
      lanes[i] = all_lanes().get(i * 256 + thread % 256);
    }
  }
};

}  // namespace logpjit::device
