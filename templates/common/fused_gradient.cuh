// The gradient warps of the fused kernel.
#pragma once

#include "common/fused_shape.cuh"
#include "common/tree.cuh"
#include "common/upstream.cuh"

namespace logpjit::device {

/// One gradient thread's share of one row.
template <typename Shape>
struct FusedWriter {
  using Logit = typename Shape::Logit;
  using RowRing = typename Shape::RowRing;
  static constexpr int kThreads = Shape::kGradientThreads;
  static constexpr int kElements = kWordElements<Logit>;
  static constexpr int kTerms = Shape::kTerms;
  static constexpr bool kSoftcap = Shape::kSoftcap;

  const FusedRow<Shape>& row;
  const RowRing& ring;
  const RowGradient& coefficients;
  const RowScale& scale;
  int thread;

  LOGPJIT_DEVICE float of(float logit) const {
    return column_gradient<kTerms, kSoftcap>(capped<kSoftcap>(logit, scale),
                                             coefficients, scale);
  }

  /// First column that no whole word covers.
  LOGPJIT_DEVICE static i64 tail_column(const FusedRow<Shape>& row) {
    return static_cast<i64>(RowRing::kVectorGroups) * kGroup - row.offset();
  }

  LOGPJIT_DEVICE Word gradient_of(const Word& raw) const {
    float values[kElements];
    LOGPJIT_UNROLL
    for (int e = 0; e < kElements; ++e) values[e] = of(element<Logit>(raw, e));
    return pack<Logit>(values);
  }

  /// Words that a thread has in every step; words between two steps' pieces.
  static constexpr int kPerStep = RowRing::kPieceWords / kThreads;
  static constexpr int kStepApart = RowRing::kPieceWords * Shape::kCluster;
  static_assert(RowRing::kPieceWords % kThreads == 0);

  /// This thread's first word of a step, in the slot and in the row's step 0.
  LOGPJIT_DEVICE const Word* first_in_slot(const Word* slot, int lead) const {
    return RowRing::piece_words(slot) + thread - lead;
  }
  LOGPJIT_DEVICE i64 first_in_row(int lead) const {
    return ring.piece_number(0) * RowRing::kPieceWords + thread - lead;
  }

  /// Whether a step's piece is written whole.
  LOGPJIT_DEVICE bool is_whole(i32 step, int lead) const {
    constexpr bool kEndsWhole = RowRing::kVectorGroups % kLanes == 0;
    const bool starts_whole = lead == 0 && row.offset() == 0;
    return (ring.piece_number(step) > 0 || starts_whole) &&
           (step < RowRing::kSteps - 1 || (kEndsWhole && lead == 0));
  }

  /// The words of a step that lie in `range`, or all of them.
  template <bool kWhole>
  LOGPJIT_DEVICE void put_words(const Word* from, Word* to,
                                typename RowRing::Range range, int lead) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kPerStep; ++i) {
      const i32 j = i * kThreads + thread - lead;
      if (!kWhole && (j < range.first || j >= range.last)) continue;
      store_stream(to + i * kThreads, gradient_of(from[i * kThreads]));
    }
  }

  /// A piece that is cut at the row's start or end.
  LOGPJIT_DEVICE void put_cut_step(i32 step, const Word* slot, Word* to,
                                   int lead) const {
    const i32 piece = ring.piece_number(step);
    auto range = RowRing::written_words(piece, lead);
    if (!Shape::kAligned && piece == 0 && row.offset() != 0) {
      range.first = 1;
      if (thread == lead) put_first_word(*RowRing::piece_words(slot));
    }
    const Word* from = first_in_slot(slot, lead);
    put_words<false>(from, to, range, lead);
    // The row's last piece has no successor to write its last words.
    const i32 late = RowRing::kPieceWords + thread - lead;
    if (piece == RowRing::kLastPiece && thread < lead && late < range.last) {
      store_stream(to + RowRing::kPieceWords,
                   gradient_of(from[RowRing::kPieceWords]));
    }
  }

  /// This thread's words of one step; `to` as from `first_in_row`, moved on.
  LOGPJIT_DEVICE void put_step(i32 step, const Word* slot, Word* to,
                               int lead) const {
    if (is_whole(step, lead)) {
      put_words<true>(first_in_slot(slot, lead), to, {}, lead);
    } else {
      put_cut_step(step, slot, to, lead);
    }
  }

  /// The word in which an unaligned row starts.
  LOGPJIT_DEVICE void put_first_word(const Word& raw) const {
    LOGPJIT_UNROLL
    for (int e = 0; e < kElements; ++e) {
      const int column = e - row.offset();
      if (column >= 0) {
        row.gradient[column] = narrow<Logit>(of(element<Logit>(raw, e)));
      }
    }
  }

  /// The columns after the last whole word, straight from memory: loaded by
  /// `load_tail` before anything is stored.
  LOGPJIT_DEVICE static bool has_tail(const FusedRow<Shape>& row, int rank,
                                      int thread) {
    return rank == 0 && tail_column(row) + thread < Shape::kRingColumns;
  }
  LOGPJIT_DEVICE static float load_tail(const FusedRow<Shape>& row, int rank,
                                        int thread) {
    if (!has_tail(row, rank, thread)) return 0.0f;
    return widen(row.logits[tail_column(row) + thread]);
  }
  LOGPJIT_DEVICE void put_tail(float logit) const {
    if (!has_tail(row, ring.rank, thread)) return;
    row.gradient[tail_column(row) + thread] = narrow<Logit>(of(logit));
  }

  /// Whether thread `thread` of block `rank` is the one that writes `column`.
  LOGPJIT_DEVICE static bool owns(const FusedRow<Shape>& row, int rank,
                                  int thread, i64 column, int lead) {
    if (column >= Shape::kRingColumns) return false;
    const i64 tail = tail_column(row);
    if (column >= tail) return rank == 0 && column - tail == thread;
    const i32 word = static_cast<i32>((column + row.offset()) / kElements);
    i32 piece = (word + lead) / RowRing::kPieceWords;
    if (piece > RowRing::kLastPiece) piece = RowRing::kLastPiece;
    if (piece % Shape::kCluster != rank) return false;
    const i32 flat = word - piece * RowRing::kPieceWords + lead;
    const i32 late = flat - RowRing::kPieceWords;
    return (late >= 0 ? late : flat % kThreads) == thread;
  }
};

/// Zeros in [first, last) of a row, by one block's gradient threads.
template <typename Logit>
LOGPJIT_DEVICE void clear_columns(Logit* row, i64 first, i64 last, int thread,
                                  int threads) {
  const Logit* end = row + last;
  LOGPJIT_NO_UNROLL
  for (Logit* at = row + first + thread; at < end; at += threads) {
    *at = narrow<Logit>(0.0f);
  }
}

/// A row's final state and what follows from it.
template <typename Shape>
struct FusedResult {
  using Logit = typename Shape::Logit;
  static constexpr int kTerms = Shape::kTerms;

  GradientTask task;
  RowState state;
  RowGradient coefficients;
  bool live;  ///< whether the gradient is not zeros

  LOGPJIT_DEVICE FusedResult(const GradientTask& of_row, const RowState& final,
                             const RowScale& scale)
      : task(of_row),
        state(final),
        live(of_row.live && final.max != -infinity()) {
    float entropy = 0.0f;
    if constexpr ((kTerms & kTermEntropy) != 0) {
      entropy = entropy_of(state, log_sum());
    }
    coefficients = row_gradient_of<kTerms>(
        state.max, state.sum, entropy, squares_of(state), task.upstream, scale);
  }

  /// Plain terms need it in two threads alone.
  LOGPJIT_DEVICE float log_sum() const { return log_accurate(state.sum); }

  /// One thread writes what does not depend on the target's logit.
  LOGPJIT_DEVICE void write(const RowFusedArguments& args, i64 n,
                            const FusedRow<Shape>& row,
                            const RowScale& scale) const {
    write_values<Logit, Shape::kVocab, kTerms, Shape::kSoftcap>(
        args.values, n, row.logits, state, log_sum(), scale);
  }

  /// One column's log-probability and, unless the row's gradient is 0, its
  /// one-hot gradient: by the thread that writes the column.
  LOGPJIT_DEVICE void finish_target(const RowFusedArguments& args, i64 n,
                                    i64 id, const FusedRow<Shape>& row,
                                    float logit, const RowScale& scale) const {
    const float x = capped<Shape::kSoftcap>(logit, scale);
    args.values.logp[n] = is_undefined(state.max)
                              ? not_a_number()
                              : log_probability(x, state.max, log_sum(), scale);
    if (!live || task.target < 0) return;
    row.gradient[id] = narrow<Logit>(target_gradient<kTerms, Shape::kSoftcap>(
        x, state.sum, task.upstream.logp, coefficients, scale));
  }
};

/// What a thread needs of row `n` before any logit, loaded a row ahead; nothing
/// past the end.
template <typename Shape>
LOGPJIT_DEVICE RowInputs fused_inputs(const RowFusedArguments& args, i64 n) {
  if (n >= args.values.row_count) return RowInputs{-1, {}, 0, 0, 0, 0};
  return load_upstream<typename Shape::Id, Shape::kTerms, false>(
      args.values.ids, args.upstream,
      vector_position<Shape::kRows>(n, args.values.rows.inner_rows));
}

/// What one gradient thread does with one row that is read.
template <typename Shape>
struct FusedGradient {
  using Logit = typename Shape::Logit;
  using RowRing = typename Shape::RowRing;
  static constexpr int kTerms = Shape::kTerms;

  const RowFusedArguments& args;
  const FusedBarriers<Shape>& barriers;
  const RowRing& ring;
  int thread;

  LOGPJIT_DEVICE void run(i64 n, const RowInputs& inputs,
                          const FusedRow<Shape>& row, u32 row_number,
                          RingPlace& place) const {
    const i64 id = inputs.id;
    const GradientTask task =
        gradient_task<Shape::kVocab, kTerms, false>(inputs, 1, thread);
    const RowScale scale = row.scale(args);
    const int lead = row.lead();
    const bool has_id = (kTerms & kTermLogp) != 0 && is_live<Shape::kVocab>(id);
    const bool owner =
        has_id && FusedWriter<Shape>::owns(row, ring.rank, thread, id, lead);
    // Before any store of this row: the gradient may lie over the logits.
    const float target_logit = owner ? widen(row.logits[id]) : 0.0f;
    const float tail = FusedWriter<Shape>::load_tail(row, ring.rank, thread);

    const RowState state =
        barriers.wait_for_state(row_number, thread, scale.to_log2);
    if (thread == 0) barriers.rearm(row_number);
    const FusedResult<Shape> result(task, state, scale);
    const bool live = result.live;
    const FusedWriter<Shape> writer{row, ring, result.coefficients, scale,
                                    thread};
    Word* to = row.gradient_words() + writer.first_in_row(lead);
    LOGPJIT_NO_UNROLL
    for (i32 step = 0; step < RowRing::kSteps; ++step) {
      mbarrier_wait(barriers.full(place), place.phase);
      const Word* slot = RowRing::slot(place);
      if (live) writer.put_step(step, slot, to, lead);
      to += FusedWriter<Shape>::kStepApart;
      sync_warp();
      if (thread % 32 == 0) mbarrier_arrive(barriers.empty(place));
      RowRing::advance(place);
    }
    if (live) {
      writer.put_tail(tail);
    } else if (ring.rank == 0) {
      clear_columns(row.gradient, 0, Shape::kVocab, thread,
                    Shape::kGradientThreads);
    }
    if (owner) {
      result.finish_target(args, n, id, row, target_logit, scale);
    } else if (ring.rank == 0 && thread == 0 && (kTerms & kTermLogp) != 0 &&
               !has_id) {
      args.values.logp[n] = 0.0f;
      count_out_of_range(args.values, id);
    }
    if (ring.rank == 0 && thread == 0) {
      result.write(args, n, row, scale);
    }
  }
};

/// Groups of warps take turns: while one finishes a row the next has begun.
template <typename Shape>
LOGPJIT_DEVICE void run_gradient(const RowFusedArguments& args,
                                 const FusedBarriers<Shape>& barriers, int rank,
                                 int thread, i64 first, i64 stride) {
  constexpr int kThreads = Shape::kGradientThreads;
  constexpr u32 kGroups = Shape::kGradientGroups;
  const u32 group = static_cast<u32>(thread / kThreads);
  thread %= kThreads;
  const typename Shape::RowRing ring{rank};
  const FusedGradient<Shape> gradient{args, barriers, ring, thread};
  RingPlace place{0, 0};
  u32 row_number = 0;
  RowInputs next = fused_inputs<Shape>(args, first);
  for (i64 n = first; n < args.values.row_count; n += stride) {
    const RowInputs inputs = next;
    const FusedRow<Shape> row(args, n, inputs.id);
    next = fused_inputs<Shape>(args, n + stride);
    if (row.is_read) {
      const u32 turn = row_number++ % kGroups;
      if (turn == group) {
        gradient.run(n, inputs, row, row_number - 1, place);
      } else {
        Shape::RowRing::skip_row(place);
      }
      if (turn != group) continue;
    } else if (group != 0) {
      continue;
    }
    if (rank != 0) continue;
    if (!row.is_read && thread < 32) {
      write_ignored<typename Shape::Id, Shape::kVocab, Shape::kTerms>(
          args.values, n, row.at, thread);
    }
    if (row.exists) {
      clear_columns(row.gradient, row.is_read ? Shape::kVocab : 0,
                    args.gradient_columns, thread, kThreads);
    }
  }
}

}  // namespace logpjit::device
