// The three roles of the fused kernel's warps.
#pragma once

#include "common/fused_gradient.cuh"
#include "common/fused_shape.cuh"
#include "common/tree.cuh"

namespace logpjit::device {

/// One thread: keeps the ring full.
template <typename Shape>
LOGPJIT_DEVICE void run_producer(const RowFusedArguments& args,
                                 const FusedBarriers<Shape>& barriers, int rank,
                                 i64 first, i64 stride) {
  const typename Shape::RowRing ring{rank};
  const CachePolicy policy = keep_policy();
  RingPlace place{0, 0};
  i64 id = FusedRow<Shape>::next_id(args, first);
  for (i64 n = first; n < args.values.row_count; n += stride) {
    const FusedRow<Shape> row(args, n, id);
    id = FusedRow<Shape>::next_id(args, n + stride);
    if (!row.is_read) continue;
    for (i32 step = 0; step < Shape::RowRing::kSteps; ++step) {
      mbarrier_wait(barriers.empty(place), place.phase ^ 1u);
      ring.load(row.words(), step, place, row.lead(), row.offset() != 0,
                barriers.full(place), policy);
      ring.advance(place);
    }
  }
}

/// A forward thread's lanes of one row, from the ring.
template <typename Shape, int kOffset>
struct FusedSweep {
  using RowRing = typename Shape::RowRing;
  using Logit = typename Shape::Logit;
  using Reader = GroupReader<Logit, kOffset>;
  static constexpr int kHeld = Shape::kHeld;

  const FusedRow<Shape>& row;
  const RowRing& ring;
  const RowScale& scale;
  int thread;

  /// Word 0 of the group that lane `i` has in every step, within a slot.
  LOGPJIT_DEVICE const Word* group_words(const Word* slot, int i) const {
    const int q = (i * Shape::kForwardThreads + thread) / RowRing::kPieceGroups;
    const int place = thread % RowRing::kPieceGroups +
                      i * Shape::kForwardThreads % RowRing::kPieceGroups;
    return RowRing::piece_words(slot, q) + place * kGroupWords<Logit>;
  }

  LOGPJIT_DEVICE void take_words(RowState& lane, const Word* from,
                                 i32 group) const {
    Word raw[Reader::kWords];
    LOGPJIT_UNROLL
    for (int w = 0; w < Reader::kWords; ++w) raw[w] = from[w];
    float x[kGroup];
    Reader::unpack(raw, x);
    take_capped(lane, x, group);
  }

  LOGPJIT_DEVICE void take_capped(RowState& lane, float (&x)[kGroup],
                                  i32 group) const {
    LOGPJIT_UNROLL
    for (int j = 0; j < kGroup; ++j) {
      x[j] = capped<Shape::kSoftcap>(x[j], scale);
    }
    take<Shape::kTerms>(lane, x, group, scale.to_log2);
  }

  LOGPJIT_DEVICE i32 group_of(i32 tile, int i) const {
    const int local = i * Shape::kForwardThreads + thread;
    return ring.piece_number(tile, local / RowRing::kPieceGroups) *
               RowRing::kPieceGroups +
           local % RowRing::kPieceGroups;
  }

  /// A step in which every lane has a group in the ring.
  LOGPJIT_DEVICE void take_whole_step(i32 tile, const Word* slot,
                                      RowState (&lanes)[kHeld]) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      take_words(lanes[i], group_words(slot, i), group_of(tile, i));
    }
  }

  LOGPJIT_DEVICE void take_last_steps(i32 tile, const Word* slot,
                                      RowState (&lanes)[kHeld]) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const i32 group = group_of(tile, i);
      if (group < RowRing::kVectorGroups) {
        take_words(lanes[i], group_words(slot, i), group);
      } else if (group < group_count(Shape::kVocab)) {
        float x[kGroup];
        load_columns<Logit, Shape::kVocab>(row.logits, group, x);
        take_capped(lanes[i], x, group);
      }
    }
  }

  LOGPJIT_DEVICE void take_tiles(i32 tile, i32 end,
                                 const FusedBarriers<Shape>& barriers,
                                 RingPlace& place,
                                 RowState (&lanes)[kHeld]) const {
    constexpr i32 kWholeSteps = RowRing::kVectorGroups / kLanes;
    LOGPJIT_NO_UNROLL
    for (; tile < end && tile < kWholeSteps; ++tile) {
      mbarrier_wait(barriers.full(place), place.phase);
      take_whole_step(tile, RowRing::slot(place), lanes);
      RowRing::advance(place);
    }
    LOGPJIT_NO_UNROLL
    for (; tile < end; ++tile) {
      const bool in_ring = tile < RowRing::kSteps;
      if (in_ring) mbarrier_wait(barriers.full(place), place.phase);
      take_last_steps(tile, RowRing::slot(place), lanes);
      if (in_ring) RowRing::advance(place);
    }
  }

  LOGPJIT_DEVICE void take_row(const FusedBarriers<Shape>& barriers,
                               RingPlace& place,
                               RowState (&lanes)[kHeld]) const {
    LOGPJIT_NO_UNROLL
    for (int segment = 0; segment < segment_count(Shape::kVocab); ++segment) {
      const i32 begin = segment * segment_tiles(Shape::kVocab);
      const i32 limit = begin + segment_tiles(Shape::kVocab);
      const i32 end =
          limit < tile_count(Shape::kVocab) ? limit : tile_count(Shape::kVocab);
      RowState fresh[kHeld];
      LOGPJIT_UNROLL
      for (int i = 0; i < kHeld; ++i) fresh[i] = empty_state();
      take_tiles(begin, end, barriers, place, fresh);
      LOGPJIT_UNROLL
      for (int i = 0; i < kHeld; ++i) {
        lanes[i] = segment == 0 ? fresh[i]
                                : merge<Shape::kTerms>(lanes[i], fresh[i],
                                                       scale.to_log2);
      }
    }
  }
};

/// Folds lane bits 9, 8 and 0 to 4 and hands the warp states to the gradient
/// warps of every block of the cluster.
template <typename Shape>
LOGPJIT_DEVICE void hand_over(const FusedBarriers<Shape>& barriers,
                              RowState (&lanes)[Shape::kHeld], u32 row_number,
                              int rank, int thread, float to_log2) {
  constexpr int kLeft = 256 / Shape::kCluster;  // threads after bits 9 and 8
  const typename Shape::Fold fold{to_log2};
  LOGPJIT_UNROLL
  for (int half = Shape::kHeld / 2; half >= 1; half /= 2) {
    LOGPJIT_UNROLL
    for (int i = 0; i < half; ++i) {
      lanes[i] = fold.merge(lanes[i], lanes[i + half]);
    }
  }
  RowState state = lanes[0];
  if constexpr (Shape::kForwardThreads > kLeft) {
    const auto store = barriers.fold_store(row_number);
    if (thread >= kLeft) store.put(thread - kLeft, state);
    sync_named(1, Shape::kForwardThreads);
    if (thread >= kLeft) return;
    if constexpr (Shape::kForwardThreads == 2 * kLeft) {
      state = fold.merge(state, store.get(thread));
    } else {
      const RowState low = fold.merge(state, store.get(thread + kLeft));
      const RowState high =
          fold.merge(store.get(thread), store.get(thread + 2 * kLeft));
      state = fold.merge(low, high);
    }
  }
  state = fold_warp<5>(state, fold);
  if (thread % 32 == 0) {
    barriers.publish(row_number, thread / 32 + 4 * rank, state);
  }
}

template <typename Shape>
LOGPJIT_DEVICE void run_forward(const RowFusedArguments& args,
                                const FusedBarriers<Shape>& barriers, int rank,
                                int thread, i64 first, i64 stride) {
  const typename Shape::RowRing ring{rank};
  RingPlace place{0, 0};
  u32 row_number = 0;
  i64 id = FusedRow<Shape>::next_id(args, first);
  for (i64 n = first; n < args.values.row_count; n += stride) {
    const FusedRow<Shape> row(args, n, id);
    id = FusedRow<Shape>::next_id(args, n + stride);
    if (!row.is_read) continue;
    const RowScale scale = row.scale(args);
    RowState lanes[Shape::kHeld];
    with_offset<typename Shape::Logit, Shape::kAligned>(
        row.logits, [&]<int kOffset>() {
          const FusedSweep<Shape, kOffset> sweep{row, ring, scale, thread};
          sweep.take_row(barriers, place, lanes);
        });
    hand_over<Shape>(barriers, lanes, row_number, rank, thread, scale.to_log2);
    ++row_number;
  }
}

}  // namespace logpjit::device
