// One rank's part of a vocab-parallel forward.
#pragma once

#include "common/offset_sweep.cuh"
#include "common/results.cuh"
#include "common/shard_partials.cuh"
#include "common/tree.cuh"

namespace logpjit::device {

/// Warp 0 writes the logits of the row's ids that this rank owns, 0 for the
/// others; `row` is null when it is not read.
template <typename Logit, typename Id, int kTerms, bool kSoftcap>
LOGPJIT_DEVICE void write_picked(const ShardStatisticsArguments& args, i64 n,
                                 float* picked, const Logit* row,
                                 const RowScale& scale, RowPosition at,
                                 int thread) {
  if ((kTerms & kTermLogp) == 0 || thread >= 32) return;
  const ShardArgument& shard = args.shard;
  u32* words = args.words + (n - shard.first_row) * args.values.ids_per_row;
  for (i64 k = thread; k < args.values.ids_per_row; k += 32) {
    const i64 id = load_id<Id>(args.values.ids, at, k);
    const bool mine = row != nullptr && id >= shard.begin && id < shard.end;
    float logit = 0.0f;
    if (mine) logit = capped<kSoftcap>(widen(row[id - shard.begin]), scale);
    if (args.words != nullptr) {
      words[k] = mine ? bits_of(logit) : 0;
    } else {
      picked[k] = logit;
    }
  }
}

/// Maximum, sums and picked logits of each row over one rank's columns, in one
/// read. Segment mode keeps every lane's state of every segment apart.
template <typename Logit, typename Id, i64 kVocab, i64 kGlobal, int kTerms,
          bool kManyIds, bool kAligned, int kRows, bool kTemperature,
          bool kSoftcap, bool kSegments, int kBlock, int kMinBlocks,
          int kFlight>
LOGPJIT_SPEC(Logit, "fp32 bf16 fp16")
LOGPJIT_SPEC(Id, "int32 int64")
LOGPJIT_SPEC(kVocab, "1..1073741824")
LOGPJIT_SPEC(kGlobal, "1..1073741824")
LOGPJIT_SPEC(kTerms, "1..15")
LOGPJIT_SPEC(kManyIds, "0 1")
LOGPJIT_SPEC(kAligned, "0 1")
LOGPJIT_SPEC(kRows, "0..2")
LOGPJIT_SPEC(kTemperature, "0 1")
LOGPJIT_SPEC(kSoftcap, "0 1")
LOGPJIT_SPEC(kSegments, "0 1")
LOGPJIT_TUNE(kBlock, "128 256 512 1024")
LOGPJIT_TUNE(kMinBlocks, "1..12")
LOGPJIT_TUNE(kFlight, "1 2 4")
LOGPJIT_KERNEL(kBlock, kMinBlocks)
shard_statistics(const ShardStatisticsArguments args) {
  using Fold = RowFold<kTerms>;
  const RowStatisticsArguments& values = args.values;
  const ShardArgument& shard = args.shard;
  const int thread = thread_index();
  const i64 n = block_index() + shard.first_row;
  const ShardPartials<Fold, kSegments> partials{
      static_cast<unsigned char*>(args.partials), shard.rows, shard.picked,
      shard.slots};
  write_header(partials, shard, thread);
  const RowPosition at = vector_position<kRows>(n, values.rows.inner_rows);
  const i64 storage = storage_row<kRows>(values.rows, n);
  const i64 place = block_index();
  float* picked = partials.picked_logits(place);
  bool live = storage >= 0 && shard.begin != shard.end;
  if constexpr (kTerms == kTermLogp) {
    live = live && any_live<Id, kGlobal, kManyIds, kBlock>(
                       values.ids, values.ids_per_row, at, thread);
  }
  const RowScale scale =
      row_scale<kTemperature, kSoftcap>(values.transform, at);
  if (!live) {
    write_picked<Logit, Id, kTerms, kSoftcap>(args, n, picked, nullptr, scale,
                                              at, thread);
    return;
  }
  const Logit* row =
      row_begin<Logit>(values.logits, values.rows,
                       row_position<kRows>(storage, values.rows.inner_rows));
  const Fold fold{scale.to_log2};
  const LaneTotals<Fold, kBlock> totals{fold, thread};
  if constexpr (kSegments) {
    // Segments count from the vocabulary's start: so must the row.
    const RowSweep<Logit, kAligned, kGlobal, kTerms, kSoftcap, kBlock, kFlight>
        sweep{row - shard.begin, scale};
    const int first = static_cast<int>(shard.begin / segment_columns(kGlobal));
    LOGPJIT_NO_UNROLL
    for (int slot = 0; (first + slot) * segment_columns(kGlobal) < shard.end;
         ++slot) {
      sweep.take_segment(totals, first + slot);
      copy_lanes<Fold, kBlock>(partials.lanes(place, slot), thread);
    }
  } else {
    const RowSweep<Logit, kAligned, kVocab, kTerms, kSoftcap, kBlock, kFlight>
        sweep{row, scale};
    sweep.take_row(totals);
    const RowState state = fold_lanes<kBlock>(lane_store<Fold>(), thread, fold);
    if (thread == 0) partials.put(place, state);
  }
  write_picked<Logit, Id, kTerms, kSoftcap>(args, n, picked, row, scale, at,
                                            thread);
}

}  // namespace logpjit::device
