// A row swept by a cluster: lanes dealt out to blocks, segments to threads.
#pragma once

#include "common/results.cuh"
#include "common/span.cuh"
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
  static constexpr int kSpan = span_tiles(kVocab);
  static_assert(kOwnLanes * kParts >= 256 && kParts <= kSegments);

  Row row;
  const RowScale& scale;
  int rank;
  int thread;

  LOGPJIT_DEVICE int own_lane() const { return thread % kOwnLanes; }

  /// This block's lanes of each segment.
  LOGPJIT_DEVICE static StateStore<Fold> segments() {
    constexpr int kAt = (kTreeWarps + kLanes) * Fold::kMembers * 4;
    return {shared_memory<float>(kAt), kOwnLanes * kSegments};
  }

  LOGPJIT_DEVICE i32 group_of(i32 tile) const {
    return tile * kLanes + rank * kOwnLanes + own_lane();
  }

  LOGPJIT_DEVICE RowState sweep_segment(int segment) const {
    RowState lane = empty_state();
    const i32 end = segment_end(kVocab, segment);
    LOGPJIT_NO_UNROLL
    for (i32 tile = segment * kTiles; tile < end; tile += kSpan) {
      const i32 group = group_of(tile);
      const int left = end - tile;
      const int count = existing_groups<kVocab, kSpan>(group);
      Word raw[kSpan][kGroupWords<Logit>];
      load_span<Logit, kAligned, kVocab>(row, group,
                                         count < left ? count : left, raw);
      take_span<kTerms, kSoftcap, kSpan == kTiles, Group<Logit>>(
          lane, raw, group, count < left ? count : left, scale);
    }
    return lane;
  }

  /// Sweeps the row and brings every lane to block 0's lane_store. All threads
  /// of the cluster call it.
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
      lane_store<Fold>().put_at(0, rank * kOwnLanes + own_lane(), lane);
    }
    sync_cluster();
  }
};

}  // namespace logpjit::device
