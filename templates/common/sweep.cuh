// One read of a row: every group to its canonical lane.
#pragma once

#include "common/span.cuh"
#include "common/walk.cuh"

namespace logpjit::device {

/// A block's walk over one row. Thread t of kBlock carries the lanes
/// i * kBlock + t; the spans of `kFlight` of them are loaded before the first
/// is used.
template <typename T, bool kAligned, i64 kVocab, int kTerms, bool kSoftcap,
          int kBlock, int kFlight>
struct RowSweep {
  using Totals = LaneTotals<RowFold<kTerms>, kBlock>;
  static constexpr int kBatch =
      kFlight < Totals::kHeld ? kFlight : Totals::kHeld;
  static constexpr int kSpan = span_tiles(kVocab);
  using Walk = RowWalk<RowFold<kTerms>, kVocab, vector_groups<kAligned>(kVocab),
                       kSpan, kBlock, kBatch>;
  /// Whether a lane is empty before every span.
  static constexpr bool kFirst = kSpan == segment_tiles(kVocab);

  const T* row;
  const RowScale& scale;

  template <int kCount, typename Reader>
  LOGPJIT_DEVICE void take(RowState& lane,
                           const Word (&raw)[kCount][Reader::kWords], i32 group,
                           int count) const {
    take_span<kTerms, kSoftcap, kFirst, Reader>(lane, raw, group, count, scale);
  }

  /// The rows' whole tiles when its first element lies kOffset elements into
  /// its word.
  template <int kOffset>
  struct Whole {
    using Reader = GroupReader<T, kOffset>;
    const RowSweep& sweep;

    template <int kCount>
    LOGPJIT_DEVICE void take_whole(i32 group, RowState (&lanes)[kBatch]) const {
      const Reader reader{reinterpret_cast<const Word*>(sweep.row - kOffset)};
      Word raw[kBatch][kCount][Reader::kWords];
      LOGPJIT_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        LOGPJIT_UNROLL
        for (int t = 0; t < kCount; ++t) {
          reader.load(group + i * kBlock + t * kLanes, raw[i][t]);
        }
      }
      LOGPJIT_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        sweep.take<kCount, Reader>(lanes[i], raw[i], group + i * kBlock,
                                   kCount);
      }
    }
  };

  template <int kCount>
  LOGPJIT_DEVICE void take_cut(i32 group, RowState (&lanes)[1]) const {
    const int count = existing_groups<kVocab, kCount>(group);
    Word raw[kCount][kGroupWords<T>];
    load_span<T, kAligned, kVocab>(AnyRow<T, kAligned>(row), group, count, raw);
    take<kCount, GroupReader<T, 0>>(lanes[0], raw, group, count);
  }

  /// The whole row.
  LOGPJIT_DEVICE void take_row(const Totals& totals) const {
    const Walk walk{totals};
    if constexpr (Walk::kWholeSegments > 0) {
      with_offset<T, kAligned>(row, [&]<int kOffset>() {
        walk.take_whole_segments(Whole<kOffset>{*this});
      });
    }
    walk.take_cut_segments(*this);
  }

  /// Segment `segment` alone; every thread its own lanes.
  LOGPJIT_DEVICE void take_segment(const Totals& totals, int segment) const {
    const Walk walk{totals};
    if (segment >= Walk::kWholeSegments) {
      return walk.take_cut_apart(*this, segment);
    }
    if constexpr (Walk::kWholeSegments > 0) {
      with_offset<T, kAligned>(row, [&]<int kOffset>() {
        walk.take_whole_apart(Whole<kOffset>{*this}, segment);
      });
    }
  }
};

}  // namespace logpjit::device
