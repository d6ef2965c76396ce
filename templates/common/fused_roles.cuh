// The three roles of the fused kernel's warps.
#pragma once

#include "common/fused_gradient.cuh"
#include "common/fused_sweep.cuh"

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
    const RowState state = fold.template merge_warp<5>(lanes[half]);
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
    const FusedSweep<Shape> sweep(barriers, ring, place, row, scale, thread);
    sweep.take_row(lanes);
    hand_over<Shape>(barriers, lanes, row_number, rank, thread, scale.to_log2);
    ++row_number;
  }
}

}  // namespace logpjit::device
