// One rank's part of a vocab-parallel KL divergence.
#pragma once

#include "common/kl_sweep.cuh"
#include "common/shard_partials.cuh"
#include "common/tree.cuh"

namespace logpjit::device {

/// Maxima and sums of each pair of rows over one rank's columns, in one read of
/// each. Segment mode keeps every lane's state of every segment apart.
template <typename LogitA, typename LogitB, i64 kVocab, i64 kGlobal,
          bool kAligned, int kRows, bool kTemperature, bool kSoftcap,
          bool kSegments, int kBlock, int kMinBlocks, int kFlight>
LOGPJIT_SPEC(LogitA, "fp32 bf16 fp16")
LOGPJIT_SPEC(LogitB, "fp32 bf16 fp16")
LOGPJIT_SPEC(kVocab, "1..1073741824")
LOGPJIT_SPEC(kGlobal, "1..1073741824")
LOGPJIT_SPEC(kAligned, "0 1")
LOGPJIT_SPEC(kRows, "0..2")
LOGPJIT_SPEC(kTemperature, "0 1")
LOGPJIT_SPEC(kSoftcap, "0 1")
LOGPJIT_SPEC(kSegments, "0 1")
LOGPJIT_TUNE(kBlock, "128 256 512 1024")
LOGPJIT_TUNE(kMinBlocks, "1..12")
LOGPJIT_TUNE(kFlight, "1 2 4")
LOGPJIT_KERNEL(kBlock, kMinBlocks)
shard_kl_statistics(const ShardKlStatisticsArguments args) {
  const KlStatisticsArguments& values = args.values;
  const ShardArgument& shard = args.shard;
  const int thread = thread_index();
  const i64 place = block_index();
  const i64 n = place + shard.first_row;
  const ShardPartials<KlFold, kSegments> partials{
      static_cast<unsigned char*>(args.partials), shard.rows, shard.picked,
      shard.slots};
  write_header(partials, shard, thread);
  const RowPosition at = vector_position<kRows>(n, values.a.rows.inner_rows);
  const i64 storage = storage_row<kRows>(values.a.rows, n);
  if (storage < 0 || shard.begin == shard.end) return;
  const RowPosition row_at =
      row_position<kRows>(storage, values.a.rows.inner_rows);
  const KlFold fold{row_scale<kTemperature, kSoftcap>(values.a.transform, at),
                    row_scale<kTemperature, kSoftcap>(values.b.transform, at)};
  const LogitA* a = row_begin<LogitA>(values.a.logits, values.a.rows, row_at);
  const LogitB* b = row_begin<LogitB>(values.b.logits, values.b.rows, row_at);
  const LaneTotals<KlFold, kBlock> totals{fold, thread};
  if constexpr (kSegments) {
    // Segments count from the vocabulary's start: so must the rows.
    const KlSweep<LogitA, LogitB, kAligned, kGlobal, kSoftcap, kBlock, kFlight>
        sweep{AnyRow<LogitA, kAligned>(a - shard.begin),
              AnyRow<LogitB, kAligned>(b - shard.begin), fold};
    const int first = static_cast<int>(shard.begin / segment_columns(kGlobal));
    LOGPJIT_NO_UNROLL
    for (int slot = 0; (first + slot) * segment_columns(kGlobal) < shard.end;
         ++slot) {
      sweep.take_segment(totals, first + slot);
      copy_lanes<KlFold, kBlock>(partials.lanes(place, slot), thread);
    }
  } else {
    const KlSweep<LogitA, LogitB, kAligned, kVocab, kSoftcap, kBlock, kFlight>
        sweep{AnyRow<LogitA, kAligned>(a), AnyRow<LogitB, kAligned>(b), fold};
    sweep.take_rows(totals);
    const KlState state =
        fold_lanes<kBlock>(lane_store<KlFold>(), thread, fold);
    if (thread == 0) partials.put(place, state);
  }
}

}  // namespace logpjit::device
