// A forward thread's walk over one row in the fused kernel's ring.
#pragma once

#include "common/fused_shape.cuh"
#include "common/offset_groups.cuh"
#include "common/span.cuh"

namespace logpjit::device {

/// A forward thread's lanes of one row, from the ring: spans in order, and in
/// each the thread's lanes.
template <typename Shape>
struct FusedSweep {
  using RowRing = typename Shape::RowRing;
  using Logit = typename Shape::Logit;
  static constexpr int kHeld = Shape::kHeld;
  static constexpr int kTiles = segment_tiles(Shape::kVocab);
  static constexpr int kSpan = span_tiles(Shape::kVocab);
  static constexpr bool kFirst = kSpan == kTiles;
  /// Segments of whole tiles; what is left is known tile by tile.
  static constexpr int kWholeSegments =
      RowRing::kVectorGroups / (kTiles * kLanes);
  static constexpr int kGroups = group_count(Shape::kRingColumns);
  /// Lanes at a time.
  static constexpr int kBatch = sizeof(Logit) == 2 && kHeld > 1 ? 2 : 1;

  const FusedBarriers<Shape>& barriers;
  const RowRing& ring;
  RingPlace& place;
  const FusedRow<Shape>& row;
  const RowScale& scale;
  int thread;
  /// This thread's group with the row's last columns, if it has one: loaded
  /// before anything else, for it comes from memory.
  Word tail[kGroupWords<Logit>];

  LOGPJIT_DEVICE FusedSweep(const FusedBarriers<Shape>& all,
                            const RowRing& of_rows, RingPlace& at,
                            const FusedRow<Shape>& of_row,
                            const RowScale& of_scale, int number)
      : barriers(all),
        ring(of_rows),
        place(at),
        row(of_row),
        scale(of_scale),
        thread(number) {
    LOGPJIT_UNROLL
    for (i32 group = RowRing::kVectorGroups; group < kGroups; ++group) {
      const int lane = group % kLanes;
      if (lane / RowRing::kPieceGroups == ring.rank &&
          lane % Shape::kForwardThreads == thread) {
        Group<Logit>::template load_columns<Shape::kRingColumns>(row.logits,
                                                                 group, tail);
      }
    }
  }

  /// The group that lane `i` of this thread has in a tile.
  LOGPJIT_DEVICE i32 group_of(i32 tile, int i) const {
    return ring.piece_number(tile) * RowRing::kPieceGroups +
           i * Shape::kForwardThreads + thread;
  }
  LOGPJIT_DEVICE const Word* words_of(const Word* slot, int held) const {
    return RowRing::piece_words(slot) +
           (held * Shape::kForwardThreads + thread) * kGroupWords<Logit>;
  }

  /// Waits for the steps of a span; its slots.
  template <int kCount>
  LOGPJIT_DEVICE void wait_for(const Word* (&slots)[kCount]) const {
    LOGPJIT_UNROLL
    for (int t = 0; t < kCount; ++t) {
      slots[t] = RowRing::slot(place);
      mbarrier_wait(barriers.full(place), place.phase);
      RowRing::advance(place);
    }
  }

  /// Calls `take(held, lane)` for every lane of this thread, kAtOnce at a time.
  template <int kAtOnce, typename Take>
  LOGPJIT_DEVICE static void for_each_lane(RowState (&lanes)[kHeld],
                                           Take&& take) {
    LOGPJIT_NO_UNROLL
    for (int first = 0; first < kHeld; first += kAtOnce) {
      LOGPJIT_UNROLL
      for (int i = 0; i < kAtOnce; ++i) take(first + i, lanes[i]);
      // Back in order after the last batch: a register cannot be indexed.
      rotate<kAtOnce>(lanes);
    }
  }
  template <int kBy>
  LOGPJIT_DEVICE static void rotate(RowState (&lanes)[kHeld]) {
    RowState rotated[kHeld];
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) rotated[i] = lanes[(i + kBy) % kHeld];
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) lanes[i] = rotated[i];
  }

  /// Whole tiles [tile, tile + kCount) of a row that starts kOffset elements
  /// into its first word.
  template <int kOffset, int kCount>
  LOGPJIT_DEVICE void take_whole(i32 tile, RowState (&lanes)[kHeld]) const {
    using Reader = OffsetGroup<Logit, kOffset>;
    const Word* slots[kCount];
    wait_for(slots);
    for_each_lane<kOffset == 0 ? kBatch : 1>(
        lanes, [&](int held, RowState& lane) {
          Word raw[kCount][Reader::kWords];
          LOGPJIT_UNROLL
          for (int t = 0; t < kCount; ++t) {
            const Word* from = words_of(slots[t], held);
            LOGPJIT_UNROLL
            for (int w = 0; w < Reader::kWords; ++w) raw[t][w] = from[w];
          }
          take_span<Shape::kTerms, Shape::kSoftcap, kFirst, Reader>(
              lane, raw, group_of(tile, held), kCount, scale);
        });
  }

  template <int kOffset>
  LOGPJIT_DEVICE void take_whole_segment(i32 tile,
                                         RowState (&lanes)[kHeld]) const {
    LOGPJIT_NO_UNROLL
    for (int at = 0; at + kSpan <= kTiles; at += kSpan) {
      take_whole<kOffset, kSpan>(tile + at, lanes);
    }
    constexpr int kRest = kTiles % kSpan;
    if constexpr (kRest != 0) {
      take_whole<kOffset, kRest>(tile + kTiles - kRest, lanes);
    }
  }

  static constexpr bool is_whole(i32 tile) {
    return (tile + 1) * kLanes <= RowRing::kVectorGroups;
  }

  /// A group near the row's end. What it lacks is masked, which changes no bit
  /// of a lane; a branch would cost more.
  LOGPJIT_DEVICE void load_cut(const Word* slot, i32 group, int held,
                               Word (&words)[kGroupWords<Logit>]) const {
    constexpr u32 kMasked = kMaskedPart<Logit>;
    LOGPJIT_UNROLL
    for (int w = 0; w < kGroupWords<Logit>; ++w) {
      words[w] =
          group < kGroups ? tail[w] : Word{kMasked, kMasked, kMasked, kMasked};
    }
    if (group < RowRing::kVectorGroups) {
      ring_words<Logit, Shape::kAligned>(words_of(slot, held), row.offset(),
                                         words);
    }
  }

  /// Tiles [kTile, kTile + kCount) near the row's end.
  template <i32 kTile, int kCount>
  LOGPJIT_DEVICE void take_cut(RowState (&lanes)[kHeld]) const {
    constexpr int kInRing = RowRing::kSteps - kTile;
    const Word* slots[kCount];
    wait_for_some<kInRing>(slots);
    for_each_lane<kBatch>(lanes, [&](int held, RowState& lane) {
      const i32 group = group_of(kTile, held);
      if (!is_whole(kTile) && group - thread % 32 >= kGroups) return;
      Word raw[kCount][kGroupWords<Logit>];
      LOGPJIT_UNROLL
      for (int t = 0; t < kCount; ++t) {
        if (is_whole(kTile + t)) {
          ring_words<Logit, Shape::kAligned>(words_of(slots[t], held),
                                             row.offset(), raw[t]);
        } else {
          load_cut(slots[t], group + t * kLanes, held, raw[t]);
        }
      }
      take_span<Shape::kTerms, Shape::kSoftcap, kFirst, Group<Logit>>(
          lane, raw, group, kCount, scale);
    });
  }

  /// The same, for a span of which the ring has kInRing steps or more.
  template <int kInRing, int kCount>
  LOGPJIT_DEVICE void wait_for_some(const Word* (&slots)[kCount]) const {
    LOGPJIT_UNROLL
    for (int t = 0; t < kCount; ++t) {
      slots[t] = RowRing::slot(place);
      if (t >= kInRing) continue;
      mbarrier_wait(barriers.full(place), place.phase);
      RowRing::advance(place);
    }
  }

  /// What is left of segment `kSegment`, from tile `kTile` on.
  template <int kSegment, i32 kTile>
  LOGPJIT_DEVICE void take_cut_segment(RowState (&lanes)[kHeld]) const {
    constexpr i32 kEnd = segment_end(Shape::kVocab, kSegment);
    if constexpr (kTile < kEnd) {
      constexpr int kCount = kEnd - kTile < kSpan ? kEnd - kTile : kSpan;
      take_cut<kTile, kCount>(lanes);
      take_cut_segment<kSegment, kTile + kCount>(lanes);
    }
  }

  LOGPJIT_DEVICE static void begin(RowState (&lanes)[kHeld]) {
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) lanes[i] = empty_state();
  }
  /// A segment joins those before it.
  LOGPJIT_DEVICE void join(bool first, RowState (&lanes)[kHeld],
                           const RowState (&segment)[kHeld]) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      lanes[i] =
          first ? segment[i]
                : merge<Shape::kTerms>(lanes[i], segment[i], scale.to_log2);
    }
  }

  /// The segments that reach the row's last tiles.
  template <int kSegment>
  LOGPJIT_DEVICE void take_cut_segments(RowState (&lanes)[kHeld]) const {
    if constexpr (kSegment * kTiles < tile_count(Shape::kVocab)) {
      RowState fresh[kHeld];
      begin(fresh);
      take_cut_segment<kSegment, kSegment * kTiles>(fresh);
      join(kSegment == 0, lanes, fresh);
      take_cut_segments<kSegment + 1>(lanes);
    }
  }

  /// The whole row.
  LOGPJIT_DEVICE void take_row(RowState (&lanes)[kHeld]) const {
    if constexpr (kWholeSegments > 0) {
      with_offset<Logit, Shape::kAligned>(row.logits, [&]<int kOffset>() {
        LOGPJIT_NO_UNROLL
        for (int segment = 0; segment < kWholeSegments; ++segment) {
          RowState fresh[kHeld];
          begin(fresh);
          take_whole_segment<kOffset>(segment * kTiles, fresh);
          join(segment == 0, lanes, fresh);
        }
      });
    }
    take_cut_segments<kWholeSegments>(lanes);
  }
};

}  // namespace logpjit::device
