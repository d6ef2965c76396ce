// Several ids per row: those that fall into a block's columns, in id order.
#pragma once

#include "common/layout.cuh"
#include "common/upstream.cuh"

namespace logpjit::device {

/// In shared memory; filled before anything is stored, so that gradients may
/// overwrite the logits.
struct Hit {
  i32 column;
  float gain;
  float logit;
  float old;  ///< the gradient's old value, when accumulating
};

struct HitList {
  Hit* hits;
  u32* warp_counts;
  int count;
};

LOGPJIT_DEVICE HitList hit_list() {
  return {shared_memory<Hit>(0), shared_memory<u32>(kHitCountsAt), 0};
}

/// Collects the table's columns in [first, last). Every thread of the block
/// calls it.
template <typename Logit, bool kAccumulate, int kBlock>
LOGPJIT_DEVICE void collect_hits(HitList& list, int ids, const Logit* row,
                                 const Logit* gradient, i64 first, i64 last,
                                 int thread) {
  constexpr int kRounds = kMostIds / kBlock;
  constexpr int kWarps = kBlock / 32;
  const IdTable table = id_table();
  i32 column[kRounds];
  u32 votes[kRounds];
  LOGPJIT_UNROLL
  for (int i = 0; i < kRounds; ++i) {
    const int k = i * kBlock + thread;
    column[i] = k < ids ? table.columns[k] : -1;
    if (column[i] < first || column[i] >= last) column[i] = -1;
    votes[i] = ballot(column[i] >= 0);
    if (thread % 32 == 0) {
      list.warp_counts[i * kWarps + thread / 32] =
          static_cast<u32>(count_bits(votes[i]));
    }
  }
  sync_threads();
  LOGPJIT_UNROLL
  for (int i = 0; i < kRounds; ++i) {
    if (i * kBlock >= ids) continue;
    int place = list.count;
    for (int warp = 0; warp < kWarps; ++warp) {
      const int found = static_cast<int>(list.warp_counts[i * kWarps + warp]);
      if (warp < thread / 32) place += found;
      list.count += found;
    }
    if (column[i] < 0) continue;
    const u32 before = votes[i] & ((1u << (thread % 32)) - 1u);
    list.hits[place + count_bits(before)] = {
        column[i], table.gains[i * kBlock + thread], widen(row[column[i]]),
        kAccumulate ? widen(gradient[column[i]]) : 0.0f};
  }
  sync_threads();
}

/// The sum of the gains at hit `index`'s column, in id order; `first` is false
/// when an earlier hit has that column.
LOGPJIT_DEVICE float sum_gains(const HitList& list, int index, bool& first) {
  const i32 column = list.hits[index].column;
  float gain = 0.0f;
  first = true;
  for (int i = 0; i < list.count; ++i) {
    if (list.hits[i].column != column) continue;
    if (i < index) first = false;
    gain += list.hits[i].gain;
  }
  return gain;
}

}  // namespace logpjit::device
