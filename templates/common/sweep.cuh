// One read of a row: every group to its canonical lane.
#pragma once

#include "common/groups.cuh"
#include "common/layout.cuh"
#include "common/store.cuh"

namespace logpjit::device {

/// A block's walk over one row. Thread t of kBlock carries the lanes
/// i * kBlock + t; `kFlight` groups are loaded before the first is used.
template <typename T, bool kAligned, i64 kVocab, int kTerms, bool kSoftcap,
          int kBlock, int kFlight>
struct RowSweep {
  static constexpr int kHeld = kLanes / kBlock;
  static constexpr int kBatchTiles = kFlight > kHeld ? kFlight / kHeld : 1;
  static constexpr int kBatchLanes = kFlight < kHeld ? kFlight : kHeld;
  static constexpr i32 kWholeTiles = vector_groups<kAligned>(kVocab) / kLanes;

  const T* row;
  const RowScale& scale;
  int thread;

  LOGPJIT_DEVICE i32 group_of(i32 tile, int held) const {
    return tile * kLanes + held * kBlock + thread;
  }

  LOGPJIT_DEVICE void take_capped(RowState& lane, float (&x)[kGroup],
                                  i32 group) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kGroup; ++i) x[i] = capped<kSoftcap>(x[i], scale);
    take<kTerms>(lane, x, group, scale.to_log2);
  }

  /// `kTiles` whole tiles from `tile` on, `kBatchLanes` lanes at a time.
  template <int kTiles, int kOffset>
  LOGPJIT_DEVICE void take_tiles(i32 tile, RowState (&lanes)[kHeld]) const {
    using Reader = GroupReader<T, kOffset>;
    const Reader reader{reinterpret_cast<const Word*>(row - kOffset)};
    LOGPJIT_UNROLL
    for (int first = 0; first < kHeld; first += kBatchLanes) {
      Word raw[kTiles][kBatchLanes][Reader::kWords];
      LOGPJIT_UNROLL
      for (int t = 0; t < kTiles; ++t) {
        LOGPJIT_UNROLL
        for (int i = 0; i < kBatchLanes; ++i) {
          reader.load(group_of(tile + t, first + i), raw[t][i]);
        }
      }
      LOGPJIT_UNROLL
      for (int t = 0; t < kTiles; ++t) {
        LOGPJIT_UNROLL
        for (int i = 0; i < kBatchLanes; ++i) {
          float x[kGroup];
          Reader::unpack(raw[t][i], x);
          take_capped(lanes[first + i], x, group_of(tile + t, first + i));
        }
      }
    }
  }

  /// The row's last tile or two, group by group.
  LOGPJIT_DEVICE void take_end(i32 tile, RowState (&lanes)[kHeld]) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const i32 group = group_of(tile, i);
      if (group >= group_count(kVocab)) continue;
      float x[kGroup];
      load_end_group<T, kAligned, kVocab>(row, group, x);
      take_capped(lanes[i], x, group);
    }
  }

  /// Tiles [tile, last) into `lanes`.
  LOGPJIT_DEVICE void take_segment(i32 tile, i32 last,
                                   RowState (&lanes)[kHeld]) const {
    const i32 whole = last < kWholeTiles ? last : kWholeTiles;
    if (tile < whole) {
      with_offset<T, kAligned>(row, [&]<int kOffset>() {
        LOGPJIT_NO_UNROLL
        for (; tile + kBatchTiles <= whole; tile += kBatchTiles) {
          take_tiles<kBatchTiles, kOffset>(tile, lanes);
        }
        if constexpr (kBatchTiles > 1) {
          LOGPJIT_NO_UNROLL
          for (; tile < whole; ++tile) take_tiles<1, kOffset>(tile, lanes);
        }
      });
    }
    LOGPJIT_NO_UNROLL
    for (; tile < last; ++tile) take_end(tile, lanes);
  }

  /// The whole row. Between segments a lane's total waits in `totals`, its own
  /// places in shared memory, to spare registers in the loop.
  LOGPJIT_DEVICE void take_row(
      RowState (&lanes)[kHeld],
      const StateStore<RowFold<kTerms>>& totals) const {
    LOGPJIT_NO_UNROLL
    for (int segment = 0; segment < segment_count(kVocab); ++segment) {
      const i32 first = segment * segment_tiles(kVocab);
      const i32 end = first + segment_tiles(kVocab);
      LOGPJIT_UNROLL
      for (int i = 0; i < kHeld; ++i) lanes[i] = empty_state();
      take_segment(first, end < tile_count(kVocab) ? end : tile_count(kVocab),
                   lanes);
      if constexpr (segment_count(kVocab) > 1) {
        LOGPJIT_UNROLL
        for (int i = 0; i < kHeld; ++i) {
          const int place = i * kBlock + thread;
          if (segment > 0) {
            lanes[i] =
                merge<kTerms>(totals.get(place), lanes[i], scale.to_log2);
          }
          totals.put(place, lanes[i]);
        }
      }
    }
  }
};

}  // namespace logpjit::device
