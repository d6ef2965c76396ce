// Forward of KL(A || B): both rows read once.
#pragma once

#include "common/kl_sweep.cuh"
#include "common/results.cuh"
#include "common/tree.cuh"

namespace logpjit::device {

/// KL(A || B) of each pair of rows and the statistics (max, sum) of both, in
/// one read of each. One block a row.
template <typename LogitA, typename LogitB, i64 kVocab, bool kAligned,
          int kRows, bool kTemperature, bool kSoftcap, int kBlock,
          int kMinBlocks, int kFlight>
LOGPJIT_SPEC(LogitA, "fp32 bf16 fp16")
LOGPJIT_SPEC(LogitB, "fp32 bf16 fp16")
LOGPJIT_SPEC(kVocab, "1..1073741824")
LOGPJIT_SPEC(kAligned, "0 1")
LOGPJIT_SPEC(kRows, "0..2")
LOGPJIT_SPEC(kTemperature, "0 1")
LOGPJIT_SPEC(kSoftcap, "0 1")
LOGPJIT_TUNE(kBlock, "128 256 512 1024")
LOGPJIT_TUNE(kMinBlocks, "1..12")
LOGPJIT_TUNE(kFlight, "1 2 4")
LOGPJIT_KERNEL(kBlock, kMinBlocks)
kl_statistics(const KlStatisticsArguments args) {
  const int thread = thread_index();
  const i64 n = block_index();
  const RowPosition at = vector_position<kRows>(n, args.a.rows.inner_rows);
  const i64 storage = storage_row<kRows>(args.a.rows, n);
  if (storage < 0) {
    if (thread == 0) {
      args.kl[n] = 0.0f;
      if (args.max_a != nullptr) args.max_a[n] = -infinity();
      if (args.sum_a != nullptr) args.sum_a[n] = 0.0f;
      if (args.max_b != nullptr) args.max_b[n] = -infinity();
      if (args.sum_b != nullptr) args.sum_b[n] = 0.0f;
    }
    return;
  }
  const RowPosition row_at =
      row_position<kRows>(storage, args.a.rows.inner_rows);
  const KlFold fold{row_scale<kTemperature, kSoftcap>(args.a.transform, at),
                    row_scale<kTemperature, kSoftcap>(args.b.transform, at)};
  const KlSweep<LogitA, LogitB, kAligned, kVocab, kSoftcap, kBlock, kFlight>
      sweep{AnyRow<LogitA, kAligned>(
                row_begin<LogitA>(args.a.logits, args.a.rows, row_at)),
            AnyRow<LogitB, kAligned>(
                row_begin<LogitB>(args.b.logits, args.b.rows, row_at)),
            fold};
  const LaneTotals<KlFold, kBlock> totals{fold, thread};
  sweep.take_rows(totals);
  const KlState row = fold_lanes<kBlock>(lane_store<KlFold>(), thread, fold);
  if (thread == 0) {
    args.kl[n] = divergence(row);
    if (args.max_a != nullptr) args.max_a[n] = row.max_a;
    if (args.sum_a != nullptr) args.sum_a[n] = row.sum_a;
    if (args.max_b != nullptr) args.max_b[n] = row.max_b;
    if (args.sum_b != nullptr) args.sum_b[n] = row.sum_b;
  }
}

}  // namespace logpjit::device
