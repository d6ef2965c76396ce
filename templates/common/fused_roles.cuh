// The three roles of the fused kernel's warps.
#pragma once

#include "common/fused_gradient.cuh"
#include "common/fused_shape.cuh"
#include "common/span.cuh"
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
template <typename Shape>
struct FusedSweep {
  using RowRing = typename Shape::RowRing;
  using Logit = typename Shape::Logit;
  using Reader = GroupReader<Logit, 0>;
  static constexpr int kHeld = Shape::kHeld;
  static constexpr int kSpan = span_tiles(Shape::kVocab);
  static constexpr bool kFirst = kSpan == segment_tiles(Shape::kVocab);
  /// Lanes at a time.
  static constexpr int kBatch = sizeof(Logit) == 2 && kHeld > 1 ? 2 : 1;

  const FusedRow<Shape>& row;
  const RowRing& ring;
  const RowScale& scale;
  int thread;
  int offset;  ///< of the row within its first word

  /// The group that lane `i` of this thread has in a tile.
  LOGPJIT_DEVICE i32 group_of(i32 tile, int i) const {
    return ring.piece_number(tile) * RowRing::kPieceGroups +
           i * Shape::kForwardThreads + thread;
  }

  /// Waits for the steps of a span; its slots.
  template <bool kWhole>
  LOGPJIT_DEVICE void wait_for(i32 tile, i32 end,
                               const FusedBarriers<Shape>& barriers,
                               RingPlace& place,
                               const Word* (&slots)[kSpan]) const {
    LOGPJIT_UNROLL
    for (int t = 0; t < kSpan; ++t) {
      slots[t] = RowRing::slot(place);
      if (!kWhole && (tile + t >= end || tile + t >= RowRing::kSteps)) continue;
      mbarrier_wait(barriers.full(place), place.phase);
      RowRing::advance(place);
    }
  }

  /// Tiles [tile, tile + kSpan), cut at `end` and the row's end unless
  /// `kWhole`.
  template <bool kWhole>
  LOGPJIT_DEVICE void take_steps(i32 tile, i32 end,
                                 const FusedBarriers<Shape>& barriers,
                                 RingPlace& place,
                                 RowState (&lanes)[kHeld]) const {
    const Word* slots[kSpan];
    wait_for<kWhole>(tile, end, barriers, place, slots);
    LOGPJIT_NO_UNROLL
    for (int first = 0; first < kHeld; first += kBatch) {
      LOGPJIT_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        take_lane<kWhole>(tile, end, first + i, slots, lanes[i]);
      }
      // Back in order after the last batch: a register cannot be indexed.
      rotate(lanes);
    }
  }

  LOGPJIT_DEVICE static void rotate(RowState (&lanes)[kHeld]) {
    RowState rotated[kHeld];
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) rotated[i] = lanes[(i + kBatch) % kHeld];
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) lanes[i] = rotated[i];
  }

  template <bool kWhole>
  LOGPJIT_DEVICE void take_lane(i32 tile, i32 end, int held,
                                const Word* const (&slots)[kSpan],
                                RowState& lane) const {
    const i32 group = group_of(tile, held);
    const int count = kWhole ? kSpan : groups_before(group, end - tile);
    int ragged = -1;
    Word raw[kSpan][Reader::kWords];
    LOGPJIT_UNROLL
    for (int t = 0; t < kSpan; ++t) {
      if (t >= count) continue;
      if (kWhole || group + t * kLanes < RowRing::kVectorGroups) {
        ring_words<Logit, Shape::kAligned>(words_of(slots[t], held), offset,
                                           raw[t]);
      } else {
        ragged = t;
      }
    }
    if constexpr (RowRing::kVectorGroups < group_count(Shape::kVocab)) {
      if (!kWhole && ragged >= 0) {
        load_ragged<Logit, Shape::kVocab>(row.logits, group, ragged, raw);
      }
    }
    take_span<Shape::kTerms, Shape::kSoftcap, kFirst, Reader>(lane, raw, group,
                                                              count, scale);
  }

  /// Groups of a span that exist and lie in its first `left` tiles.
  LOGPJIT_DEVICE static int groups_before(i32 group, int left) {
    const int count = existing_groups<Shape::kVocab, kSpan>(group);
    return count < left ? count : left;
  }

  LOGPJIT_DEVICE const Word* words_of(const Word* slot, int held) const {
    return RowRing::piece_words(slot) +
           (held * Shape::kForwardThreads + thread) * kGroupWords<Logit>;
  }

  LOGPJIT_DEVICE void take_segment(i32 tile, i32 end,
                                   const FusedBarriers<Shape>& barriers,
                                   RingPlace& place,
                                   RowState (&lanes)[kHeld]) const {
    constexpr i32 kWholeSteps = RowRing::kVectorGroups / kLanes;
    const i32 whole = end < kWholeSteps ? end : kWholeSteps;
    LOGPJIT_NO_UNROLL
    for (; tile + kSpan <= whole; tile += kSpan) {
      take_steps<true>(tile, end, barriers, place, lanes);
    }
    LOGPJIT_NO_UNROLL
    for (; tile < end; tile += kSpan) {
      take_steps<false>(tile, end, barriers, place, lanes);
    }
  }

  LOGPJIT_DEVICE void take_row(const FusedBarriers<Shape>& barriers,
                               RingPlace& place,
                               RowState (&lanes)[kHeld]) const {
    LOGPJIT_NO_UNROLL
    for (int segment = 0; segment < segment_count(Shape::kVocab); ++segment) {
      RowState fresh[kHeld];
      LOGPJIT_UNROLL
      for (int i = 0; i < kHeld; ++i) fresh[i] = empty_state();
      take_segment(segment * segment_tiles(Shape::kVocab),
                   segment_end(Shape::kVocab, segment), barriers, place, fresh);
      LOGPJIT_UNROLL
      for (int i = 0; i < kHeld; ++i) {
        lanes[i] = segment == 0 ? fresh[i]
                                : merge<Shape::kTerms>(lanes[i], fresh[i],
                                                       scale.to_log2);
      }
    }
  }
};

/// Folds bits 8 and 7 of the lanes that a thread carries in registers, for each
/// value of bit 9 that the block has: into lanes[0] (and lanes[1]) of threads
/// below 128. All forward threads call it.
template <typename Shape>
LOGPJIT_DEVICE void fold_high_bits(
    const StateStore<typename Shape::Fold>& store,
    RowState (&lanes)[Shape::kHeld], int thread,
    const typename Shape::Fold& fold) {
  constexpr int kThreads = Shape::kForwardThreads;
  constexpr int kHalves = 2 / Shape::kCluster;
  constexpr int kEach = Shape::kHeld / kHalves;
  LOGPJIT_UNROLL
  for (int half = 0; half < kHalves; ++half) {
    RowState* own = lanes + half * kEach;
    if constexpr (kThreads == 128) {
      lanes[half] = fold_four(own[0], own[2], own[1], own[3], fold);
    } else if constexpr (kThreads == 256) {
      lanes[half] = fold.merge(own[0], own[1]);
    }
    if constexpr (kThreads > 128) {
      if (thread >= 128) {
        store.put(half * (kThreads - 128) + thread - 128, lanes[half]);
      }
    }
  }
  if constexpr (kThreads > 128) {
    sync_named(1, kThreads);
    if (thread >= 128) return;
    LOGPJIT_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      const int at = half * (kThreads - 128) + thread;
      if constexpr (kThreads == 256) {
        lanes[half] = fold.merge(lanes[half], store.get(at));
      } else {
        lanes[half] = fold_four(lanes[half], store.get(at + 128), store.get(at),
                                store.get(at + 256), fold);
      }
    }
  }
}

/// Folds lane bits 8, 7 and 0 to 4 and hands the warp states to the gradient
/// warps of every block of the cluster.
template <typename Shape>
LOGPJIT_DEVICE void hand_over(const FusedBarriers<Shape>& barriers,
                              RowState (&lanes)[Shape::kHeld], u32 row_number,
                              int rank, int thread, float to_log2) {
  const typename Shape::Fold fold{to_log2};
  fold_high_bits<Shape>(barriers.fold_store(row_number), lanes, thread, fold);
  if (thread >= 128) return;
  LOGPJIT_UNROLL
  for (int half = 0; half < 2 / Shape::kCluster; ++half) {
    const RowState state = fold_warp<5>(lanes[half], fold);
    if (thread % 32 == 0) {
      barriers.publish(row_number, thread / 32 + 4 * (half + rank), state);
    }
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
    const FusedSweep<Shape> sweep{row, ring, scale, thread, row.offset()};
    sweep.take_row(barriers, place, lanes);
    hand_over<Shape>(barriers, lanes, row_number, rank, thread, scale.to_log2);
    ++row_number;
  }
}

}  // namespace logpjit::device
