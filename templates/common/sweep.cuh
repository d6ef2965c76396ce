// One read of a row: every group to its canonical lane.
#pragma once

#include "common/span.cuh"
#include "common/walk.cuh"

namespace logpjit::device {

/// Rows and terms that lose no bandwidth to that: aligned rows, spans that are
/// long beside a branch, and terms that leave issue slots. (On an H200 entropy
/// loses 1 %, spans of 3 tiles 1 to 2 %, unaligned rows 5 %.)
template <bool kAligned, i64 kVocab, int kTerms>
constexpr bool kSuitsOneBody = kAligned&& span_tiles(kVocab) > 3 &&
                               (kTerms & (kTermEntropy | kTermSquares)) == 0;

/// A block's walk over one row. Thread t of kBlock carries the lanes
/// i * kBlock + t; the spans of `kFlight` of them are loaded before the first
/// is used.
///
/// Here one body serves whole and cut spans, so that a kernel compiles fast.
template <typename T, bool kAligned, i64 kVocab, int kTerms, bool kSoftcap,
          int kBlock, int kFlight,
          bool kOneBody = kSuitsOneBody<kAligned, kVocab, kTerms>>
struct RowSweep {
  using Totals = LaneTotals<RowFold<kTerms>, kBlock>;
  static constexpr int kBatch =
      kFlight < Totals::kHeld ? kFlight : Totals::kHeld;
  static constexpr int kSpan = span_tiles(kVocab);
  using Walk = SpanWalk<RowFold<kTerms>, kVocab,
                        vector_groups<kAligned>(kVocab), kSpan, kBlock, kBatch>;
  /// Whether a lane is empty before every span.
  static constexpr bool kFirst = kSpan == segment_tiles(kVocab);

  const T* row;
  const RowScale& scale;

  /// One branch around the loads: what follows is the same code for all spans.
  template <int kCount>
  LOGPJIT_DEVICE void take(bool whole, i32 group,
                           RowState (&lanes)[kBatch]) const {
    using Row = AnyRow<T, kAligned>;
    const Row from(row);
    Word words[kBatch][kCount][Row::kWords];
    int ragged[kBatch];
    if (whole) {
      LOGPJIT_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        load_whole(from, group + i * kBlock, words[i]);
        ragged[i] = -1;
      }
    } else {
      if (group >= group_count(kVocab)) return;
      LOGPJIT_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        ragged[i] = load_cut<kVocab>(from, group + i * kBlock, words[i]);
      }
    }
    LOGPJIT_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const i32 first = group + i * kBlock;
      Word raw[kCount][kGroupWords<T>];
      align_span<kVocab>(from, first, words[i], ragged[i], raw);
      take_span<kTerms, kSoftcap, kFirst, Group<T>>(lanes[i], raw, first,
                                                    kCount, scale);
    }
  }

  /// The whole row.
  LOGPJIT_DEVICE void take_row(const Totals& totals) const {
    // Settled, or it would be computed anew for every span.
    Walk{totals}.take_row(RowSweep{settled(row), scale});
  }

  /// Segment `segment` alone; every thread its own lanes.
  LOGPJIT_DEVICE void take_segment(const Totals& totals, int segment) const {
    Walk{totals}.take_segment(*this, segment, true);
  }
};

}  // namespace logpjit::device
