// Reduction family 1: the fixed binary tree over 1024 lanes. Lane bits fold in
// the order 9, 8, 0, 1, 2, 3, 4, 5, 6, 7 whatever the block size: the high bits
// in registers or shared memory first, since shuffling every lane costs 8 % of
// the bandwidth at V = 32000 on an H200.
#pragma once

#include "common/store.cuh"

namespace logpjit::device {

/// Lane bits 0 to `bits` - 1 of a warp: first the maxima, then every state is
/// rescaled once, then the sums. (Merging level by level would rescale at each,
/// and the approximate exponential's bias would add up.)
template <int kBits, typename Fold>
LOGPJIT_DEVICE typename Fold::State fold_warp(typename Fold::State state,
                                              const Fold& fold) {
  float members[Fold::kMembers];
  Fold::pack(state, members);
  float maxima[Fold::kMaxima];
  LOGPJIT_UNROLL
  for (int i = 0; i < Fold::kMaxima; ++i) {
    maxima[i] = members[i];
    LOGPJIT_UNROLL
    for (int bit = 0; bit < kBits; ++bit) {
      maxima[i] = max_nan(maxima[i], shuffle_xor(maxima[i], 1 << bit));
    }
  }
  Fold::pack(fold.raised(state, maxima), members);
  LOGPJIT_UNROLL
  for (int i = Fold::kMaxima; i < Fold::kMembers; ++i) {
    LOGPJIT_UNROLL
    for (int bit = 0; bit < kBits; ++bit) {
      members[i] =
          Fold::combine(i, members[i], shuffle_xor(members[i], 1 << bit));
    }
  }
  return Fold::unpack(members);
}

/// Bits 9 and 8, for the states that this thread of `kBlock` holds: lane
/// i * kBlock + thread in `lanes[i]`. What is left is in `lanes[0]` (and
/// `lanes[1]` for 128 threads), in threads below 256.
template <int kBlock, typename Fold>
LOGPJIT_DEVICE void fold_high_bits(
    typename Fold::State (&lanes)[kLanes / kBlock],
    const StateStore<Fold>& store, int thread, const Fold& fold) {
  constexpr int kHeld = kLanes / kBlock;
  LOGPJIT_UNROLL
  for (int bit = 512; bit >= 256; bit /= 2) {
    const int half = bit / kBlock;
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      if (i < half) lanes[i] = fold.merge(lanes[i], lanes[i + half]);
    }
  }
  if constexpr (kBlock > 256) {
    if (thread >= 256) store.put(thread - 256, lanes[0]);
    sync_threads();
    if (thread >= 256) return;
    if constexpr (kBlock == 512) {
      lanes[0] = fold.merge(lanes[0], store.get(thread));
    } else {
      const auto low = fold.merge(lanes[0], store.get(thread + 256));
      const auto high = fold.merge(store.get(thread), store.get(thread + 512));
      lanes[0] = fold.merge(low, high);
    }
  }
}

/// The whole tree, once a block. Every thread calls it; the result is returned
/// to every thread of warp 0.
template <int kBlock, typename Fold>
LOGPJIT_DEVICE typename Fold::State fold_lanes(
    typename Fold::State (&lanes)[kLanes / kBlock], int thread,
    const Fold& fold) {
  const StateStore<Fold> store = tree_store<Fold, kBlock>();
  fold_high_bits<kBlock>(lanes, store, thread, fold);
  constexpr int kWarpSlots = tree_states(kBlock) - 8;
  constexpr int kSlots = kBlock == 128 ? 2 : 1;
  if (thread < 256) {
    LOGPJIT_UNROLL
    for (int i = 0; i < kSlots; ++i) {
      const auto state = fold_warp<5>(lanes[i], fold);
      if (thread % 32 == 0) store.put(kWarpSlots + thread / 32 + 4 * i, state);
    }
  }
  sync_threads();
  typename Fold::State row = lanes[0];
  if (thread < 32) {
    row = fold_warp<3>(store.get(kWarpSlots + thread % 8), fold);
  }
  return row;
}

}  // namespace logpjit::device
