// The ranks' partial results as values of the whole rows.
#pragma once

#include "common/results.cuh"
#include "common/shard_partials.cuh"
#include "common/tree.cuh"

namespace logpjit::device {

/// Whether any id of the row is live; every lane of the warp gets the answer.
template <typename Id, i64 kGlobal>
LOGPJIT_DEVICE bool any_live_in_warp(const RowStatisticsArguments& args,
                                     RowPosition at, int lane) {
  bool mine = false;
  for (i64 k = lane; k < args.ids_per_row; k += 32) {
    mine = mine || is_live<kGlobal>(load_id<Id>(args.ids, at, k));
  }
  return ballot(mine) != 0;
}

/// The row's log-probabilities from the logits that their owners sent.
template <typename Id, i64 kGlobal, typename Gathered>
LOGPJIT_DEVICE void write_owned_logp(const ShardMergeArguments& args, i64 n,
                                     const Gathered& gathered, float max,
                                     float log_sum, const RowScale& scale,
                                     RowPosition at, int lane) {
  const RowStatisticsArguments& values = args.values;
  const i64 row = n - args.shard.first_row;
  for (i64 k = lane; k < values.ids_per_row; k += 32) {
    const i64 id = load_id<Id>(values.ids, at, k);
    float value = 0.0f;
    if (is_live<kGlobal>(id)) {
      const float logit =
          args.words != nullptr
              ? float_of(args.words[row * values.ids_per_row + k])
              : gathered.of(gathered.owner(id)).picked_logits(row)[k];
      value = is_undefined(max) ? not_a_number()
                                : log_probability(logit, max, log_sum, scale);
    } else {
      count_out_of_range(values, id);
    }
    values.logp[n * values.ids_per_row + k] = value;
  }
}

/// Ranks that do not agree get no value that could be taken for one.
template <int kTerms>
LOGPJIT_DEVICE void write_refusal(const ShardMergeArguments& args, i64 n,
                                  u32 disagreement, int lane) {
  const RowStatisticsArguments& values = args.values;
  if (lane == 0) {
    *args.disagreement = disagreement;
    if (values.max != nullptr) values.max[n] = not_a_number();
    if (values.sum != nullptr) values.sum[n] = not_a_number();
    if constexpr ((kTerms & kTermEntropy) != 0) {
      values.entropy[n] = not_a_number();
    }
    if constexpr ((kTerms & kTermLse) != 0) {
      if (values.lse != nullptr) values.lse[n] = not_a_number();
    }
    if constexpr ((kTerms & kTermSquares) != 0) {
      values.squares[n] = not_a_number();
    }
  }
  if constexpr ((kTerms & kTermLogp) != 0) {
    for (i64 k = lane; k < values.ids_per_row; k += 32) {
      values.logp[n * values.ids_per_row + k] = not_a_number();
    }
  }
}

/// Values and saved statistics from the partials of all ranks, merged in rank
/// order: a warp a row. Segment mode merges lanes segment by segment, then
/// folds them as a sweep of the whole row does: a block a row.
template <typename Id, i64 kGlobal, int kTerms, int kRows, bool kTemperature,
          bool kSegments>
LOGPJIT_SPEC(Id, "int32 int64")
LOGPJIT_SPEC(kGlobal, "1..1073741824")
LOGPJIT_SPEC(kTerms, "1..15")
LOGPJIT_SPEC(kRows, "0..2")
LOGPJIT_SPEC(kTemperature, "0 1")
LOGPJIT_SPEC(kSegments, "0 1")
LOGPJIT_KERNEL(256, 1)
shard_merge(const ShardMergeArguments args) {
  using Fold = RowFold<kTerms>;
  const RowStatisticsArguments& values = args.values;
  const ShardArgument& shard = args.shard;
  const int thread = thread_index();
  const int lane = thread % 32;
  const i64 row =
      kSegments ? block_index() : block_index() * kMergeRows + thread / 32;
  if (row >= shard.rows) return;
  const i64 n = row + shard.first_row;
  const GatheredPartials<Fold, kSegments> gathered{
      static_cast<unsigned char*>(const_cast<void*>(args.partials)),
      args.rank_bytes, args.ranks, shard};
  const bool writes = !kSegments || thread < 32;
  if (const u32 disagreement = gathered.disagreement(); disagreement != 0) {
    if (writes) write_refusal<kTerms>(args, n, disagreement, lane);
    return;
  }
  const RowPosition at = vector_position<kRows>(n, values.rows.inner_rows);
  bool live = storage_row<kRows>(values.rows, n) >= 0;
  if constexpr (kTerms == kTermLogp) {
    live = any_live_in_warp<Id, kGlobal>(values, at, lane) && live;
  }
  if (!live) {
    if (writes) write_ignored<Id, kGlobal, kTerms>(values, n, at, lane);
    return;
  }
  const RowScale scale = row_scale<kTemperature, false>(values.transform, at);
  const Fold fold{scale.to_log2};
  RowState state;
  if constexpr (kSegments) {
    gathered.template merge_lanes<kGlobal>(row, thread, fold);
    state = fold_lanes<kMergeBlock>(lane_store<Fold>(), thread, fold);
  } else {
    state = gathered.merge(row, fold);
  }
  if (!writes) return;
  const float log_sum = log_accurate(state.sum);
  if (lane == 0) {
    write_values<float, kGlobal, kTerms, false>(values, n, nullptr, state,
                                                log_sum, scale);
  }
  if constexpr ((kTerms & kTermLogp) != 0) {
    write_owned_logp<Id, kGlobal>(args, n, gathered, state.max, log_sum, scale,
                                  at, lane);
  }
}

}  // namespace logpjit::device
