// The ranks' partial results as KL divergences of the whole rows.
#pragma once

#include "common/kl_fold.cuh"
#include "common/results.cuh"
#include "common/shard_partials.cuh"
#include "common/tree.cuh"

namespace logpjit::device {

/// The divergence and the statistics of both sides from a state.
LOGPJIT_DEVICE void write_divergence(const KlStatisticsArguments& args, i64 n,
                                     float kl, const KlState& state) {
  args.kl[n] = kl;
  if (args.max_a != nullptr) args.max_a[n] = state.max_a;
  if (args.sum_a != nullptr) args.sum_a[n] = state.sum_a;
  if (args.max_b != nullptr) args.max_b[n] = state.max_b;
  if (args.sum_b != nullptr) args.sum_b[n] = state.sum_b;
}

/// KL(A || B) and both sides' (max, sum) from the partials of all ranks, merged
/// in rank order: a warp a row. Segment mode merges lanes segment by segment,
/// then folds them as a sweep of the whole rows does: a block a row.
template <i64 kGlobal, int kRows, bool kTemperature, bool kSegments>
LOGPJIT_SPEC(kGlobal, "1..1073741824")
LOGPJIT_SPEC(kRows, "0..2")
LOGPJIT_SPEC(kTemperature, "0 1")
LOGPJIT_SPEC(kSegments, "0 1")
LOGPJIT_KERNEL(256, 1)
shard_kl_merge(const ShardKlMergeArguments args) {
  const KlStatisticsArguments& values = args.values;
  const ShardArgument& shard = args.shard;
  const int thread = thread_index();
  const i64 row =
      kSegments ? block_index() : block_index() * kMergeRows + thread / 32;
  if (row >= shard.rows) return;
  const i64 n = row + shard.first_row;
  const bool writes = thread % (kSegments ? kMergeBlock : 32) == 0;
  const GatheredPartials<KlFold, kSegments> gathered{
      static_cast<unsigned char*>(const_cast<void*>(args.partials)),
      args.rank_bytes, args.ranks, shard};
  if (const u32 disagreement = gathered.disagreement(); disagreement != 0) {
    const float nan = not_a_number();
    if (writes) {
      *args.disagreement = disagreement;
      write_divergence(values, n, nan, {nan, nan, nan, nan, nan});
    }
    return;
  }
  if (storage_row<kRows>(values.a.rows, n) < 0) {
    if (writes) write_divergence(values, n, 0.0f, empty_kl_state());
    return;
  }
  const RowPosition at = vector_position<kRows>(n, values.a.rows.inner_rows);
  const KlFold fold{row_scale<kTemperature, false>(values.a.transform, at),
                    row_scale<kTemperature, false>(values.b.transform, at)};
  KlState state;
  if constexpr (kSegments) {
    gathered.template merge_lanes<kGlobal>(row, thread, fold);
    state = fold_lanes<kMergeBlock>(lane_store<KlFold>(), thread, fold);
  } else {
    state = gathered.merge(row, fold);
  }
  if (writes) write_divergence(values, n, divergence(state), state);
}

}  // namespace logpjit::device
