// One read of a row with a body for whole tiles alone.
#pragma once

#include "common/offset_groups.cuh"
#include "common/sweep.cuh"

namespace logpjit::device {

/// Where issue slots are short whole tiles have code of their own, and that for
/// the row's offset within its word, chosen once a row: nothing is shifted.
template <typename T, bool kAligned, i64 kVocab, int kTerms, bool kSoftcap,
          int kBlock, int kFlight>
struct RowSweep<T, kAligned, kVocab, kTerms, kSoftcap, kBlock, kFlight, false> {
  using Totals = LaneTotals<RowFold<kTerms>, kBlock>;
  static constexpr int kBatch =
      kFlight < Totals::kHeld ? kFlight : Totals::kHeld;
  static constexpr int kSpan = span_tiles(kVocab);
  using Walk = RowWalk<RowFold<kTerms>, kVocab, vector_groups<kAligned>(kVocab),
                       kSpan, kBlock, kBatch>;
  static constexpr bool kFirst = kSpan == segment_tiles(kVocab);

  const T* row;
  const RowScale& scale;

  template <int kCount, typename Reader>
  LOGPJIT_DEVICE void take(RowState& lane,
                           const Word (&raw)[kCount][Reader::kWords], i32 group,
                           int count) const {
    take_span<kTerms, kSoftcap, kFirst, Reader>(lane, raw, group, count, scale);
  }

  /// The row's whole tiles when its first element lies kOffset elements into
  /// its word.
  template <int kOffset>
  struct Whole {
    using Reader = OffsetGroup<T, kOffset>;
    const RowSweep& sweep;

    template <int kCount>
    LOGPJIT_DEVICE void take_whole(i32 group, RowState (&lanes)[kBatch]) const {
      const Word* words = reinterpret_cast<const Word*>(sweep.row - kOffset);
      Word raw[kBatch][kCount][Reader::kWords];
      LOGPJIT_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        LOGPJIT_UNROLL
        for (int t = 0; t < kCount; ++t) {
          Reader::load(words, group + i * kBlock + t * kLanes, raw[i][t]);
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
    take<kCount, Group<T>>(lanes[0], raw, group, count);
  }

  LOGPJIT_DEVICE void take_row(const Totals& totals) const {
    const Walk walk{totals};
    if constexpr (Walk::kWholeSegments > 0) {
      with_offset<T, kAligned>(row, [&]<int kOffset>() {
        walk.take_whole_segments(Whole<kOffset>{*this});
      });
    }
    walk.take_cut_segments(*this);
  }

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
