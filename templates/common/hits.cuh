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
  int count;
};

LOGPJIT_DEVICE HitList hit_list() { return {shared_memory<Hit>(0), 0}; }

/// Collects the table's columns in [first, last). Every warp counts them all
/// and notes those of its own 32 ids at a time; then each thread looks up the
/// logits of the hits that it will write. Every thread of the block calls it.
template <typename Logit, bool kAccumulate, int kBlock>
LOGPJIT_DEVICE void collect_hits(HitList& list, int ids, const Logit* row,
                                 const Logit* gradient, i64 first, i64 last,
                                 int thread) {
  constexpr int kWarps = kBlock / 32;
  const IdTable table = id_table();
  const u32 lower_lanes = (1u << (thread % 32)) - 1u;
  LOGPJIT_NO_UNROLL
  for (int i = 0; i * 32 < ids; ++i) {
    const int k = i * 32 + thread % 32;
    const i32 column = k < ids ? table.columns[k] : -1;
    const bool hit = column >= first && column < last;
    const u32 votes = ballot(hit);
    if (hit && i % kWarps == thread / 32) {
      Hit& noted = list.hits[list.count + count_bits(votes & lower_lanes)];
      noted.column = column;
      noted.gain = table.gains[k];
    }
    list.count += count_bits(votes);
  }
  sync_threads();
  for (int i = thread; i < list.count; i += kBlock) {
    Hit& hit = list.hits[i];
    hit.logit = widen(row[hit.column]);
    hit.old = kAccumulate ? widen(gradient[hit.column]) : 0.0f;
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
