// Rows that are too long for the fused kernel's ring.
#pragma once

#include "common/fused_roles.cuh"

namespace logpjit::device {

/// A thread's groups of a row's last segment, held in registers from their load
/// until their gradient is written.
template <typename Shape>
struct FusedRest {
  using Logit = typename Shape::Logit;
  using RowRing = typename Shape::RowRing;
  using Reader = Group<Logit>;
  static_assert(Shape::kAligned);
  static constexpr int kHeld = Shape::kHeld;
  static constexpr i32 kFirstTile = RowRing::kSteps;
  static constexpr int kTiles = tile_count(Shape::kVocab) - kFirstTile;
  static constexpr int kSpan = span_tiles(Shape::kVocab);
  static constexpr int kSpans = (kTiles + kSpan - 1) / kSpan;
  static constexpr bool kFirst = kSpan == segment_tiles(Shape::kVocab);
  static constexpr i32 kVectorGroups = vector_groups<true>(Shape::kVocab);
  static constexpr int kWholeTiles = kVectorGroups / kLanes - kFirstTile;

  RowRing ring;
  int thread;
  Word words[kHeld][kSpans][kSpan][Reader::kWords];

  LOGPJIT_DEVICE FusedRest(const RowRing& of, int number)
      : ring(of), thread(number) {}

  /// The group that lane `i` of this thread has in a tile of the rest.
  LOGPJIT_DEVICE i32 group_of(int i, int tile) const {
    return ring.piece_number(kFirstTile + tile) * RowRing::kPieceGroups +
           i * Shape::kForwardThreads + thread;
  }

  /// Calls `whole(group, words)` for every group that can be moved as words and
  /// `ragged(group, words)` for the row's last columns.
  template <typename Whole, typename Ragged>
  LOGPJIT_DEVICE void for_each_group(Whole&& whole, Ragged&& ragged) {
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      LOGPJIT_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        const i32 group = group_of(i, tile);
        auto& own = words[i][tile / kSpan][tile % kSpan];
        if (tile < kWholeTiles || group < kVectorGroups) {
          whole(group, own);
        } else if (group < group_count(Shape::kVocab)) {
          ragged(group, own);
        }
      }
    }
  }

  /// Starts the loads of a row.
  LOGPJIT_DEVICE void load(const FusedRow<Shape>& row) {
    const CachePolicy policy = keep_policy();
    for_each_group(
        [&](i32 group, auto& to) {
          LOGPJIT_UNROLL
          for (int w = 0; w < Reader::kWords; ++w) {
            to[w] = load_with(policy, row.words() + group * Reader::kWords + w);
          }
        },
        [&](i32 group, auto& to) {
          Reader::template load_columns<Shape::kVocab>(row.logits, group, to);
        });
  }

  /// The segment's own state.
  LOGPJIT_DEVICE void take(RowState (&lanes)[kHeld],
                           const RowScale& scale) const {
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      lanes[i] = empty_state();
      LOGPJIT_UNROLL
      for (int span = 0; span < kSpans; ++span) {
        const i32 group = group_of(i, span * kSpan);
        const int count = (span + 1) * kSpan <= kWholeTiles
                              ? kSpan
                              : existing_groups<Shape::kVocab, kSpan>(group);
        take_span<Shape::kTerms, Shape::kSoftcap, kFirst, Reader>(
            lanes[i], words[i][span], group, count, scale);
      }
    }
  }

  LOGPJIT_DEVICE void put(const FusedWriter<Shape>& writer) {
    const FusedRow<Shape>& row = writer.row;
    for_each_group(
        [&](i32 group, const auto& from) {
          LOGPJIT_UNROLL
          for (int w = 0; w < Reader::kWords; ++w) {
            store_stream(row.gradient_words() + group * Reader::kWords + w,
                         writer.gradient_of(from[w]));
          }
        },
        [&](i32 group, const auto& from) { put_columns(writer, group, from); });
  }

  /// The row's last columns, where no whole group is left.
  LOGPJIT_DEVICE static void put_columns(const FusedWriter<Shape>& writer,
                                         i32 group,
                                         const Word (&from)[Reader::kWords]) {
    float x[kGroup];
    Reader::unpack(from, x);
    LOGPJIT_UNROLL
    for (int e = 0; e < kGroup; ++e) {
      const i64 column = static_cast<i64>(group) * kGroup + e;
      if (column < Shape::kVocab) {
        writer.row.gradient[column] = narrow<Logit>(writer.of(x[e]));
      }
    }
  }

  /// Whether this thread writes `column`.
  LOGPJIT_DEVICE bool owns(i64 column) const {
    if (column < Shape::kRingColumns || column >= Shape::kVocab) return false;
    const int lane = static_cast<int>(column / kGroup % kLanes);
    return lane / RowRing::kPieceGroups == ring.rank &&
           lane % Shape::kForwardThreads == thread;
  }
};

/// A thread that does both passes: while it writes a row's gradient from the
/// ring, segment by segment, it takes the next row a segment behind.
template <typename Shape>
struct FusedLong {
  using Logit = typename Shape::Logit;
  using RowRing = typename Shape::RowRing;
  static constexpr int kTerms = Shape::kTerms;
  static constexpr int kThreads = Shape::kForwardThreads;
  static constexpr int kSegments = segment_count(Shape::kVocab) - 1;
  static constexpr i32 kSegmentSteps = segment_tiles(Shape::kVocab);
  static_assert(kThreads == Shape::kGradientThreads);
  static_assert(RowRing::kSteps == kSegments * kSegmentSteps);

  const RowFusedArguments& args;
  const FusedBarriers<Shape>& barriers;
  RowRing ring;
  int thread;
  i64 stride;  ///< between this cluster's rows
  FusedRest<Shape> rest;
  RingPlace ahead{0, 0};   ///< of the forward pass
  RingPlace behind{0, 0};  ///< of the gradient

  LOGPJIT_DEVICE FusedLong(const RowFusedArguments& arguments,
                           const FusedBarriers<Shape>& all,
                           const RowRing& of_rows, int number, i64 apart)
      : args(arguments),
        barriers(all),
        ring(of_rows),
        thread(number),
        stride(apart),
        rest(of_rows, number) {}

  /// The first row from `n` on that is read, or the end; finishes those that
  /// are not. `id` is row n's.
  LOGPJIT_DEVICE i64 next_read(i64 n, i64 id) const {
    LOGPJIT_NO_UNROLL
    while (n < args.values.row_count) {
      const FusedRow<Shape> row(args, n, id);
      if (row.is_read) break;
      if (ring.rank == 0 && thread < 32) {
        write_ignored<typename Shape::Id, Shape::kVocab, kTerms>(
            args.values, n, row.at, thread);
      }
      if (ring.rank == 0 && row.exists) {
        clear_columns(row.gradient, 0, args.gradient_columns, thread, kThreads);
      }
      n += stride;
      id = FusedRow<Shape>::next_id(args, n);
    }
    return n;
  }

  /// The forward pass over one segment in the ring.
  LOGPJIT_DEVICE void take(int segment, const FusedRow<Shape>& row,
                           const RowScale& scale,
                           RowState (&lanes)[Shape::kHeld]) {
    const FusedSweep<Shape> sweep(barriers, ring, ahead, row, scale, thread);
    RowState fresh[Shape::kHeld];
    sweep.begin(fresh);
    sweep.template take_whole_segment<0>(segment * kSegmentSteps, fresh);
    sweep.join(segment == 0, lanes, fresh);
  }

  /// The gradient of one segment in the ring; frees its slots.
  LOGPJIT_DEVICE void put(int segment, bool live,
                          const FusedWriter<Shape>& writer, int lead) {
    i32 step = segment * kSegmentSteps;
    const i32 end = step + kSegmentSteps;
    Word* to = writer.row.gradient_words() + writer.first_in_row(lead) +
               static_cast<i64>(step) * FusedWriter<Shape>::kStepApart;
    LOGPJIT_NO_UNROLL
    for (; step < end; ++step) {
      if (live) writer.put_step(step, RowRing::slot(behind), to, lead);
      to += FusedWriter<Shape>::kStepApart;
      sync_warp();
      if (thread % 32 == 0) mbarrier_arrive(barriers.empty(behind));
      RowRing::advance(behind);
    }
  }

  /// A row's gradient, and meanwhile the forward pass of row `after`, if that
  /// exists.
  LOGPJIT_DEVICE void turn(bool live, const FusedWriter<Shape>& writer,
                           i64 after, RowState (&lanes)[Shape::kHeld]) {
    const int lead = writer.row.lead();
    const bool more = after < args.values.row_count;
    const FusedRow<Shape> next(args, more ? after : 0, 0);
    const RowScale scale = next.scale(args);
    if (live) rest.put(writer);
    // Not in the loop, at whose end the loads would be waited for.
    if (more) rest.load(next);
    LOGPJIT_NO_UNROLL
    for (int segment = 0; segment < kSegments; ++segment) {
      put(segment, live, writer, lead);
      if (more && segment > 0) take(segment - 1, next, scale, lanes);
    }
    if (more) finish_forward(next, scale, lanes);
  }

  /// What is left of a forward pass when all but one segment of the ring's are
  /// taken. The rest comes first: the ring's last steps are still on their way.
  LOGPJIT_DEVICE void finish_forward(const FusedRow<Shape>& row,
                                     const RowScale& scale,
                                     RowState (&lanes)[Shape::kHeld]) {
    RowState last[Shape::kHeld];
    rest.take(last, scale);
    take(kSegments - 1, row, scale, lanes);
    LOGPJIT_UNROLL
    for (int i = 0; i < Shape::kHeld; ++i) {
      lanes[i] = merge<kTerms>(lanes[i], last[i], scale.to_log2);
    }
  }

  /// The first row has no gradient to go with.
  LOGPJIT_DEVICE void begin(i64 n, RowState (&lanes)[Shape::kHeld]) {
    const FusedRow<Shape> row(args, n, 0);
    const RowScale scale = row.scale(args);
    rest.load(row);
    LOGPJIT_NO_UNROLL
    for (int segment = 0; segment < kSegments - 1; ++segment) {
      take(segment, row, scale, lanes);
    }
    finish_forward(row, scale, lanes);
  }

  /// `inputs` are row n's, `next` those of the row after it: loaded a row
  /// ahead.
  LOGPJIT_DEVICE void run(i64 first) {
    RowState lanes[Shape::kHeld];
    i64 n = next_read(first, FusedRow<Shape>::next_id(args, first));
    if (n >= args.values.row_count) return;
    RowInputs inputs = fused_inputs<Shape>(args, n);
    RowInputs next = fused_inputs<Shape>(args, n + stride);
    begin(n, lanes);
    LOGPJIT_NO_UNROLL
    for (u32 number = 0; n < args.values.row_count; ++number) {
      const i64 after = next_read(n + stride, next.id);
      if (after != n + stride) next = fused_inputs<Shape>(args, after);
      const RowInputs own = inputs;
      inputs = next;
      next = fused_inputs<Shape>(args, after + stride);
      // Or what follows from it would be kept over the loop, in registers that
      // are not there.
      rest.thread = thread = settled(thread);
      finish_row(n, number, own, after, lanes);
      n = after;
    }
  }

  /// Row `n`, whose lanes are complete, and the forward pass of row `after`.
  LOGPJIT_DEVICE void finish_row(i64 n, u32 number, const RowInputs& inputs,
                                 i64 after, RowState (&lanes)[Shape::kHeld]) {
    const i64 id = inputs.id;
    const FusedRow<Shape> row(args, n, id);
    const RowScale scale = row.scale(args);
    hand_over<Shape>(barriers, lanes, number, ring.rank, thread, scale.to_log2);
    const bool has_id = (kTerms & kTermLogp) != 0 && is_live<Shape::kVocab>(id);
    const bool owner = has_id && (rest.owns(id) ||
                                  FusedWriter<Shape>::owns(
                                      row, ring.rank, thread, id, row.lead()));
    // Before any store of this row: the gradient may lie over the logits.
    const float target_logit = owner ? widen(row.logits[id]) : 0.0f;
    const RowState state =
        barriers.wait_for_state(number, thread, scale.to_log2);
    if (thread == 0) barriers.rearm(number);
    const FusedResult<Shape> result(
        gradient_task<Shape::kVocab, kTerms, false>(inputs, 1, thread), state,
        scale);
    turn(result.live, {row, ring, result.coefficients, scale, thread}, after,
         lanes);
    if (ring.rank == 0) {
      clear_columns(row.gradient, result.live ? Shape::kVocab : 0,
                    args.gradient_columns, thread, kThreads);
    }
    if (owner) result.finish_target(args, n, id, row, target_logit, scale);
    // Last: no warp is to be late for the gradient.
    if (ring.rank == 0 && thread == 0) {
      result.write(args, n, row, scale);
      if ((kTerms & kTermLogp) != 0 && !has_id) {
        args.values.logp[n] = 0.0f;
        count_out_of_range(args.values, id);
      }
    }
  }
};

template <typename Shape>
LOGPJIT_DEVICE void run_long_rows(const RowFusedArguments& args,
                                  const FusedBarriers<Shape>& barriers,
                                  int rank, int thread, i64 first, i64 stride) {
  const typename Shape::RowRing ring{rank};
  FusedLong<Shape>(args, barriers, ring, thread, stride).run(first);
}

}  // namespace logpjit::device
