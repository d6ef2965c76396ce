// The order in which a block takes a row: segments, then batches of lanes, then
// spans.
#pragma once

#include "common/groups.cuh"
#include "common/totals.cuh"

namespace logpjit::device {

/// A walk of `kBlock` threads over the tiles of a row whose `kVectorGroups`
/// first groups can be loaded as words. `kBatch` lanes of a thread are worked
/// on at a time. A sweep offers
///   take_whole<kCount>(group, lanes)  `kCount` groups of each of the lanes,
///                                     kLanes apart; the first lane's first
///                                     group is `group`
///   take_cut<kCount>(group, lanes)    the same near the row's end, where
///                                     groups may be missing
template <typename Fold, i64 kVocab, i32 kVectorGroups, int kSpan, int kBlock,
          int kBatch>
struct RowWalk {
  static constexpr int kTiles = segment_tiles(kVocab);
  /// Segments of whole tiles; what is left is known tile by tile.
  static constexpr int kWholeSegments = kVectorGroups / (kTiles * kLanes);

  const LaneTotals<Fold, kBlock>& totals;

  LOGPJIT_DEVICE i32 group_of(i32 tile, int first) const {
    return tile * kLanes + first * kBlock + totals.thread;
  }

  template <typename Sweep, typename Lanes>
  LOGPJIT_DEVICE void take_whole_segment(const Sweep& sweep, i32 tile,
                                         int first, Lanes& lanes) const {
    LOGPJIT_NO_UNROLL
    for (int at = 0; at + kSpan <= kTiles; at += kSpan) {
      sweep.template take_whole<kSpan>(group_of(tile + at, first), lanes);
    }
    constexpr int kRest = kTiles % kSpan;
    if constexpr (kRest != 0) {
      sweep.template take_whole<kRest>(group_of(tile + kTiles - kRest, first),
                                       lanes);
    }
  }

  /// The segments of whole tiles.
  template <typename Sweep>
  LOGPJIT_DEVICE void take_whole_segments(const Sweep& sweep) const {
    LOGPJIT_NO_UNROLL
    for (int segment = 0; segment < kWholeSegments; ++segment) {
      totals.template take<kBatch>(segment == 0, [&](int first, auto& lanes) {
        take_whole_segment(sweep, segment * kTiles, first, lanes);
      });
    }
  }

  /// One segment of whole tiles, which the totals hold alone afterwards.
  template <typename Sweep>
  LOGPJIT_DEVICE void take_whole_apart(const Sweep& sweep, int segment) const {
    totals.template take<kBatch>(true, [&](int first, auto& lanes) {
      take_whole_segment(sweep, segment * kTiles, first, lanes);
    });
  }

  /// What is left of segment `kSegment`, from tile `kTile` on.
  template <int kSegment, i32 kTile, typename Sweep, typename Lanes>
  LOGPJIT_DEVICE void take_cut_segment(const Sweep& sweep, int first,
                                       Lanes& lanes) const {
    constexpr i32 kEnd = segment_end(kVocab, kSegment);
    if constexpr (kTile < kEnd) {
      constexpr int kCount = kEnd - kTile < kSpan ? kEnd - kTile : kSpan;
      sweep.template take_cut<kCount>(group_of(kTile, first), lanes);
      take_cut_segment<kSegment, kTile + kCount>(sweep, first, lanes);
    }
  }

  /// The segments that reach the row's last tiles, lane by lane.
  template <int kSegment = kWholeSegments, typename Sweep>
  LOGPJIT_DEVICE void take_cut_segments(const Sweep& sweep) const {
    if constexpr (kSegment * kTiles < tile_count(kVocab)) {
      totals.template take<1>(kSegment == 0, [&](int first, auto& lanes) {
        take_cut_segment<kSegment, kSegment * kTiles>(sweep, first, lanes);
      });
      take_cut_segments<kSegment + 1>(sweep);
    }
  }

  /// One segment that reaches the row's last tiles, which the totals hold alone
  /// afterwards.
  template <int kSegment = kWholeSegments, typename Sweep>
  LOGPJIT_DEVICE void take_cut_apart(const Sweep& sweep, int segment) const {
    if constexpr (kSegment * kTiles < tile_count(kVocab)) {
      if (segment != kSegment) {
        return take_cut_apart<kSegment + 1>(sweep, segment);
      }
      totals.template take<1>(true, [&](int first, auto& lanes) {
        take_cut_segment<kSegment, kSegment * kTiles>(sweep, first, lanes);
      });
    }
  }
};

/// The same walk with one body for all spans, so that a kernel compiles fast. A
/// sweep offers
///   take<kCount>(whole, group, lanes)  `kCount` groups of each of the lanes,
///                                      kLanes apart; the first lane's first
///                                      group is `group`. Unless `whole` they
///                                      lie near the row's end, where groups
///                                      may be missing
template <typename Fold, i64 kVocab, i32 kVectorGroups, int kSpan, int kBlock,
          int kBatch>
struct SpanWalk {
  static constexpr int kTiles = segment_tiles(kVocab);
  static constexpr int kRest = kTiles % kSpan;
  static constexpr i32 kWholeTiles = kVectorGroups / kLanes;

  const LaneTotals<Fold, kBlock>& totals;

  template <int kCount, typename Sweep, typename Lanes>
  LOGPJIT_DEVICE void take_span(const Sweep& sweep, i32 tile, int first,
                                Lanes& lanes) const {
    const i32 group = tile * kLanes + first * kBlock + totals.thread;
    sweep.template take<kCount>(tile + kCount <= kWholeTiles, group, lanes);
  }

  /// One segment, merged into the totals, or in their place when `fresh`.
  template <typename Sweep>
  LOGPJIT_DEVICE void take_segment(const Sweep& sweep, int segment,
                                   bool fresh) const {
    totals.template take<kBatch>(fresh, [&](int first, auto& lanes) {
      const i32 tile = segment * kTiles;
      LOGPJIT_NO_UNROLL
      for (int at = 0; at + kSpan <= kTiles; at += kSpan) {
        take_span<kSpan>(sweep, tile + at, first, lanes);
      }
      if constexpr (kRest != 0) {
        take_span<kRest>(sweep, tile + kTiles - kRest, first, lanes);
      }
    });
  }

  template <typename Sweep>
  LOGPJIT_DEVICE void take_row(const Sweep& sweep) const {
    LOGPJIT_NO_UNROLL
    for (int segment = 0; segment < segment_count(kVocab); ++segment) {
      take_segment(sweep, segment, segment == 0);
    }
  }
};

}  // namespace logpjit::device
