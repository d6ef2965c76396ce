// Forward: values and statistics of a row from one read of its logits.
#pragma once

#include "common/offset_sweep.cuh"
#include "common/prefetch.cuh"
#include "common/results.cuh"
#include "common/tree.cuh"

namespace logpjit::device {

/// Log-probabilities, entropy, log-sum-exp, sum of p^2, argmax and the saved
/// (max, sum) of each row, in one read. One block a row; bits depend on the
/// row's values, V and the terms' formulas alone.
template <typename Logit, typename Id, i64 kVocab, int kTerms, bool kManyIds,
          bool kAligned, int kRows, bool kTemperature, bool kSoftcap,
          int kBlock, int kMinBlocks, int kFlight>
LOGPJIT_SPEC(Logit, "fp32 bf16 fp16")
LOGPJIT_SPEC(Id, "int32 int64")
LOGPJIT_SPEC(kVocab, "1..1073741824")
LOGPJIT_SPEC(kTerms, "1..31")
LOGPJIT_SPEC(kManyIds, "0 1")
LOGPJIT_SPEC(kAligned, "0 1")
LOGPJIT_SPEC(kRows, "0..2")
LOGPJIT_SPEC(kTemperature, "0 1")
LOGPJIT_SPEC(kSoftcap, "0 1")
LOGPJIT_TUNE(kBlock, "128 256 512 1024")
LOGPJIT_TUNE(kMinBlocks, "1..12")
LOGPJIT_TUNE(kFlight, "1 2 4")
LOGPJIT_KERNEL(kBlock, kMinBlocks)
row_statistics(const RowStatisticsArguments args) {
  const int thread = thread_index();
  const i64 n = block_index();
  const RowPosition at = vector_position<kRows>(n, args.rows.inner_rows);
  const i64 storage = storage_row<kRows>(args.rows, n);
  bool live = storage >= 0;
  if constexpr (kTerms == kTermLogp) {
    live = live && any_live<Id, kVocab, kManyIds, kBlock>(
                       args.ids, args.ids_per_row, at, thread);
  }
  if (!live) {
    if (thread < 32)
      write_ignored<Id, kVocab, kTerms, kManyIds>(args, n, at, thread);
    return;
  }
  const RowScale scale = row_scale<kTemperature, kSoftcap>(args.transform, at);
  const Logit* row =
      row_begin<Logit>(args.logits, args.rows,
                       row_position<kRows>(storage, args.rows.inner_rows));
  OnlyTarget<Logit, Id, kVocab, kTerms, kManyIds> target(args.ids, at, thread);
  const RowSweep<Logit, kAligned, kVocab, kTerms, kSoftcap, kBlock, kFlight>
      sweep{row, scale};
  const RowFold<kTerms> fold{scale.to_log2};
  const LaneTotals<RowFold<kTerms>, kBlock> totals{fold, thread};
  sweep.take_row(totals);
  target.load(row);
  const RowPrefetch<Logit, Id, kVocab, kTerms, kManyIds, kRows> prefetch{
      args, n, kMinBlocks * multiprocessors()};
  prefetch.next(thread);
  const RowState state =
      fold_lanes<kBlock>(lane_store<RowFold<kTerms>>(), thread, fold);
  if (thread < 32) {
    write_row<Logit, Id, kVocab, kTerms, kManyIds, kSoftcap>(
        args, n, row, target, state, scale, at, thread);
  }
}

}  // namespace logpjit::device
