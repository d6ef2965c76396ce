// One read of two rows: every group to its canonical lane.
#pragma once

#include "common/kl_fold.cuh"
#include "common/span.cuh"
#include "common/walk.cuh"

namespace logpjit::device {

/// The larger of `top` and a side's logits in a span.
template <bool kSoftcap, typename T, int kTiles>
LOGPJIT_DEVICE float top_of(float top,
                            const Word (&raw)[kTiles][kGroupWords<T>],
                            int count, const RowScale& scale) {
  Peak<T> peak;
  LOGPJIT_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    if (t >= count) continue;
    if constexpr (kSoftcap) {
      float x[kGroup];
      unpack_capped<kSoftcap, Group<T>>(raw[t], x, scale);
      top = max_nan(top, max_of(x));
    } else {
      Group<T>::look(raw[t], peak);
    }
  }
  return max_nan(top, peak.value());
}

/// A block's walk over one row of each side, as RowSweep's over one.
template <typename A, typename B, bool kAligned, i64 kVocab, bool kSoftcap,
          int kBlock, int kFlight>
struct KlSweep {
  using Totals = LaneTotals<KlFold, kBlock>;
  static constexpr int kBatch =
      kFlight < Totals::kHeld ? kFlight : Totals::kHeld;
  using Walk = RowWalk<KlFold, kVocab, vector_groups<kAligned>(kVocab),
                       kl_span_tiles(kVocab), kBlock, kBatch>;

  AnyRow<A, kAligned> a;
  AnyRow<B, kAligned> b;
  const KlFold& fold;

  /// `count` groups of one lane from their words: one maximum a side, then the
  /// sums.
  template <int kCount>
  LOGPJIT_DEVICE void take(KlState& lane,
                           const Word (&raw_a)[kCount][kGroupWords<A>],
                           const Word (&raw_b)[kCount][kGroupWords<B>],
                           int count) const {
    const float max_a =
        top_of<kSoftcap, A>(lane.max_a, raw_a, count, fold.scale_a);
    const float max_b =
        top_of<kSoftcap, B>(lane.max_b, raw_b, count, fold.scale_b);
    raise(lane, max_a, max_b, fold.scale_a, fold.scale_b);
    LOGPJIT_UNROLL
    for (int t = 0; t < kCount; ++t) {
      if (t >= count) continue;
      float x[kGroup];
      float y[kGroup];
      unpack_capped<kSoftcap, Group<A>>(raw_a[t], x, fold.scale_a);
      unpack_capped<kSoftcap, Group<B>>(raw_b[t], y, fold.scale_b);
      add(lane, x, y, fold.scale_a, fold.scale_b);
    }
  }

  template <int kCount>
  LOGPJIT_DEVICE void take_whole(i32 group, KlState (&lanes)[kBatch]) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      Word raw_a[kCount][kGroupWords<A>];
      Word raw_b[kCount][kGroupWords<B>];
      load_span<A, kAligned, kVocab>(a, group + i * kBlock, kWholeSpan, raw_a);
      load_span<B, kAligned, kVocab>(b, group + i * kBlock, kWholeSpan, raw_b);
      take<kCount>(lanes[i], raw_a, raw_b, kCount);
    }
  }

  template <int kCount>
  LOGPJIT_DEVICE void take_cut(i32 group, KlState (&lanes)[1]) const {
    const int count = existing_groups<kVocab, kCount>(group);
    Word raw_a[kCount][kGroupWords<A>];
    Word raw_b[kCount][kGroupWords<B>];
    load_span<A, kAligned, kVocab>(a, group, count, raw_a);
    load_span<B, kAligned, kVocab>(b, group, count, raw_b);
    take<kCount>(lanes[0], raw_a, raw_b, count);
  }

  LOGPJIT_DEVICE void take_rows(const Totals& totals) const {
    const Walk walk{totals};
    walk.take_whole_segments(*this);
    walk.take_cut_segments(*this);
  }

  /// Segment `segment` alone; every thread its own lanes.
  LOGPJIT_DEVICE void take_segment(const Totals& totals, int segment) const {
    const Walk walk{totals};
    if (segment >= Walk::kWholeSegments) {
      walk.take_cut_apart(*this, segment);
    } else {
      walk.take_whole_apart(*this, segment);
    }
  }
};

}  // namespace logpjit::device
