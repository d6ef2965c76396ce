// One rank's part of a vocab-parallel KL divergence.
#pragma once

#include "common/kl_sweep.cuh"
#include "common/shard_partials.cuh"
#include "common/tree.cuh"

namespace logpjit::device {

/// Tiles [tile, end) of a sweep, counted from its row's start.
template <typename Sweep>
LOGPJIT_DEVICE void take_segment(const Sweep& sweep, i32 tile, i32 end,
                                 KlState (&lanes)[Sweep::kHeld]) {
  constexpr i32 kWholeTiles = Sweep::kVectorGroups / kLanes;
  LOGPJIT_NO_UNROLL
  for (; tile < end && tile < kWholeTiles; ++tile) sweep.take_tile(tile, lanes);
  LOGPJIT_NO_UNROLL
  for (; tile < end; ++tile) sweep.take_end(tile, lanes);
}

/// Maxima and sums of each pair of rows over one rank's columns, in one read of
/// each. Segment mode keeps every lane's state of every segment apart.
template <typename LogitA, typename LogitB, i64 kVocab, i64 kGlobal,
          bool kAligned, int kRows, bool kTemperature, bool kSoftcap,
          bool kSegments, int kBlock, int kMinBlocks>
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
  const LogitA* a = static_cast<const LogitA*>(values.a.logits) +
                    element_offset(values.a.rows, row_at);
  const LogitB* b = static_cast<const LogitB*>(values.b.logits) +
                    element_offset(values.b.rows, row_at);
  KlState lanes[kLanes / kBlock];
  if constexpr (kSegments) {
    // Segments count from the vocabulary's start: so must tiles.
    const KlSweep<LogitA, LogitB, kAligned, kGlobal, kSoftcap, kBlock> sweep{
        AnyRow<LogitA, kAligned>(a - shard.begin),
        AnyRow<LogitB, kAligned>(b - shard.begin), fold, thread};
    constexpr i32 kTiles = segment_tiles(kGlobal);
    const i32 first = static_cast<i32>(shard.begin / kTileColumns);
    const i32 last =
        static_cast<i32>((shard.end + kTileColumns - 1) / kTileColumns);
    LOGPJIT_NO_UNROLL
    for (i32 slot = 0; first + slot * kTiles < last; ++slot) {
      const i32 tile = first + slot * kTiles;
      LOGPJIT_UNROLL
      for (int i = 0; i < kLanes / kBlock; ++i) lanes[i] = empty_kl_state();
      take_segment(sweep, tile, tile + kTiles < last ? tile + kTiles : last,
                   lanes);
      const StateStore<KlFold> store = partials.lanes(place, slot);
      LOGPJIT_UNROLL
      for (int i = 0; i < kLanes / kBlock; ++i) {
        store.put(i * kBlock + thread, lanes[i]);
      }
    }
  } else {
    const KlSweep<LogitA, LogitB, kAligned, kVocab, kSoftcap, kBlock> sweep{
        AnyRow<LogitA, kAligned>(a), AnyRow<LogitB, kAligned>(b), fold, thread};
    sweep.take_rows(lanes, row_totals<KlFold, kBlock>());
    const KlState state = fold_lanes<kBlock>(lanes, thread, fold);
    if (thread == 0) partials.put(place, state);
  }
}

}  // namespace logpjit::device
