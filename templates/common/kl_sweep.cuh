// One read of two rows: every group to its canonical lane.
#pragma once

#include "common/any_offset.cuh"
#include "common/kl_fold.cuh"
#include "common/layout.cuh"

namespace logpjit::device {

template <typename A, typename B, bool kAligned, i64 kVocab, bool kSoftcap,
          int kBlock>
struct KlSweep {
  static constexpr int kHeld = kLanes / kBlock;
  static constexpr i32 kVectorGroups = vector_groups<kAligned>(kVocab);

  AnyRow<A, kAligned> a;
  AnyRow<B, kAligned> b;
  const KlFold& fold;
  int thread;

  LOGPJIT_DEVICE void take_capped(KlState& lane, float (&x)[kGroup],
                                  float (&y)[kGroup]) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      x[i] = capped<kSoftcap>(x[i], fold.scale_a);
      y[i] = capped<kSoftcap>(y[i], fold.scale_b);
    }
    take(lane, x, y, fold.scale_a, fold.scale_b);
  }

  LOGPJIT_DEVICE i32 group_of(i32 tile, int held) const {
    return tile * kLanes + held * kBlock + thread;
  }

  LOGPJIT_DEVICE void take_tile(i32 tile, KlState (&lanes)[kHeld]) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      Word raw_a[AnyRow<A, kAligned>::kWords];
      Word raw_b[AnyRow<B, kAligned>::kWords];
      a.load(group_of(tile, i), raw_a);
      b.load(group_of(tile, i), raw_b);
      float x[kGroup];
      float y[kGroup];
      a.unpack(raw_a, x);
      b.unpack(raw_b, y);
      take_capped(lanes[i], x, y);
    }
  }

  LOGPJIT_DEVICE void take_end(i32 tile, KlState (&lanes)[kHeld]) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const i32 group = group_of(tile, i);
      if (group >= group_count(kVocab)) continue;
      float x[kGroup];
      float y[kGroup];
      load_end_group<A, kAligned, kVocab>(a.row, group, x);
      load_end_group<B, kAligned, kVocab>(b.row, group, y);
      take_capped(lanes[i], x, y);
    }
  }

  /// The whole rows; totals wait in shared memory between segments.
  LOGPJIT_DEVICE void take_rows(KlState (&lanes)[kHeld],
                                const StateStore<KlFold>& totals) const {
    constexpr i32 kWholeTiles = kVectorGroups / kLanes;
    LOGPJIT_NO_UNROLL
    for (int segment = 0; segment < segment_count(kVocab); ++segment) {
      i32 tile = segment * segment_tiles(kVocab);
      const i32 limit = tile + segment_tiles(kVocab);
      const i32 end = limit < tile_count(kVocab) ? limit : tile_count(kVocab);
      LOGPJIT_UNROLL
      for (int i = 0; i < kHeld; ++i) lanes[i] = empty_kl_state();
      LOGPJIT_NO_UNROLL
      for (; tile < end && tile < kWholeTiles; ++tile) take_tile(tile, lanes);
      LOGPJIT_NO_UNROLL
      for (; tile < end; ++tile) take_end(tile, lanes);
      if constexpr (segment_count(kVocab) > 1) {
        LOGPJIT_UNROLL
        for (int i = 0; i < kHeld; ++i) {
          const int place = i * kBlock + thread;
          if (segment > 0) lanes[i] = fold.merge(totals.get(place), lanes[i]);
          totals.put(place, lanes[i]);
        }
      }
    }
  }
};

}  // namespace logpjit::device
