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
  const IdTable table = id_table();
  for (int base = 0; base < ids; base += kBlock) {
    const int k = base + thread;
    const i32 column = k < ids ? table.columns[k] : -1;
    const bool mine = column >= 0 && column >= first && column < last;
    const u32 votes = ballot(mine);
    if (thread % 32 == 0) {
      list.warp_counts[thread / 32] = static_cast<u32>(count_bits(votes));
    }
    sync_threads();
    int place = list.count;
    for (int warp = 0; warp < kBlock / 32; ++warp) {
      const int found = static_cast<int>(list.warp_counts[warp]);
      if (warp < thread / 32) place += found;
      list.count += found;
    }
    if (mine) {
      const u32 before = votes & ((1u << (thread % 32)) - 1u);
      list.hits[place + count_bits(before)] = {
          column, table.gains[k], widen(row[column]),
          kAccumulate ? widen(gradient[column]) : 0.0f};
    }
    sync_threads();
  }
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
