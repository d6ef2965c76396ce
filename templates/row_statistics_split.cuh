// Forward for few rows: a cluster shares a row, so that one row of a large
// vocabulary uses the GPU.
#pragma once

#include "common/split_sweep.cuh"

namespace logpjit::device {

/// The values and statistics of row_statistics, bit for bit, by `kSplit` blocks
/// a row: each takes some lanes, and `kParts` groups of its threads take the
/// row's segments side by side.
template <typename Logit, typename Id, i64 kVocab, int kTerms, bool kManyIds,
          bool kAligned, int kRows, bool kTemperature, bool kSoftcap,
          int kSplit, int kParts>
LOGPJIT_SPEC(Logit, "fp32 bf16 fp16")
LOGPJIT_SPEC(Id, "int32 int64")
LOGPJIT_SPEC(kVocab, "1..1073741824")
LOGPJIT_SPEC(kTerms, "1..31")
LOGPJIT_SPEC(kManyIds, "0 1")
LOGPJIT_SPEC(kAligned, "0 1")
LOGPJIT_SPEC(kRows, "0..2")
LOGPJIT_SPEC(kTemperature, "0 1")
LOGPJIT_SPEC(kSoftcap, "0 1")
LOGPJIT_TUNE(kSplit, "2 4 8 16")
LOGPJIT_TUNE(kParts, "1 2 4")
LOGPJIT_CLUSTER_KERNEL(1024 / kSplit * kParts, 1)
row_statistics_split(const RowStatisticsArguments args) {
  using Fold = RowFold<kTerms>;
  constexpr int kBlock = 1024 / kSplit * kParts;
  const int thread = thread_index();
  const int rank = cluster_rank();
  const i64 n = block_index() / kSplit;
  const RowPosition at = vector_position<kRows>(n, args.rows.inner_rows);
  const i64 storage = storage_row<kRows>(args.rows, n);
  bool live = storage >= 0;
  if constexpr (kTerms == kTermLogp) {
    live = live && any_live<Id, kVocab, kManyIds, kBlock>(
                       args.ids, args.ids_per_row, at, thread);
  }
  if (!live) {
    if (rank == 0 && thread < 32) {
      write_ignored<Id, kVocab, kTerms, kManyIds>(args, n, at, thread);
    }
    return;
  }
  const RowScale scale = row_scale<kTemperature, kSoftcap>(args.transform, at);
  const Logit* row =
      row_begin<Logit>(args.logits, args.rows,
                       row_position<kRows>(storage, args.rows.inner_rows));
  OnlyTarget<Logit, Id, kVocab, kTerms, kManyIds> target(args.ids, at, thread);
  const Fold fold{scale.to_log2};
  const SplitSweep<Logit, kVocab, kTerms, kAligned, kSoftcap, kSplit, kParts>
      sweep{AnyRow<Logit, kAligned>(row), scale, rank, thread};
  if (rank == 0) target.load(row);
  sweep.gather(fold);
  if (rank != 0) return;
  const RowState state = fold_lanes<kBlock>(lane_store<Fold>(), thread, fold);
  if (thread < 32) {
    write_row<Logit, Id, kVocab, kTerms, kManyIds, kSoftcap>(
        args, n, row, target, state, scale, at, thread);
  }
}

}  // namespace logpjit::device
