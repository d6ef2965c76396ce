// Reduction family 1: the fixed binary tree over 1024 lanes. Lane bits fold in
// the order 9, 8, 0, 1, 2, 3, 4, 5, 6, 7 whatever the block size: the high bits
// in registers or shared memory first, since shuffling every lane costs 8 % of
// the bandwidth at V = 32000 on an H200.
#pragma once

#include "common/layout.cuh"
#include "common/store.cuh"

namespace logpjit::device {

/// The state of the warp lane whose number differs in `mask`, merged in.
template <int kTerms>
LOGPJIT_DEVICE RowState fold_across(const RowState& state, int mask,
                                    float to_log2) {
  RowState other = empty_state();
  other.max = shuffle_xor(state.max, mask);
  other.sum = shuffle_xor(state.sum, mask);
  if constexpr ((kTerms & kTermEntropy) != 0) {
    other.weight = shuffle_xor(state.weight, mask);
  }
  if constexpr ((kTerms & kTermSquares) != 0) {
    other.square = shuffle_xor(state.square, mask);
  }
  if constexpr ((kTerms & kTermArgmax) != 0) {
    other.group = shuffle_xor(state.group, mask);
  }
  return merge<kTerms>(state, other, to_log2);
}

template <int kTerms>
LOGPJIT_DEVICE RowState fold_warp(RowState state, float to_log2) {
  LOGPJIT_NO_UNROLL
  for (int mask = 1; mask < 32; mask *= 2) {
    state = fold_across<kTerms>(state, mask, to_log2);
  }
  return state;
}

/// Bits 9 and 8, for the states that this thread of `kBlock` holds: lane
/// i * kBlock + thread in `lanes[i]`. What is left is in `lanes[0]` (and
/// `lanes[1]` for 128 threads), in threads below 256.
template <int kTerms, int kBlock>
LOGPJIT_DEVICE void fold_high_bits(RowState (&lanes)[kLanes / kBlock],
                                   const StateStore<kTerms>& store,
                                   int thread, float to_log2) {
  constexpr int kHeld = kLanes / kBlock;
  LOGPJIT_UNROLL
  for (int bit = 512; bit >= 256; bit /= 2) {
    const int half = bit / kBlock;
    LOGPJIT_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      if (i < half) lanes[i] = merge<kTerms>(lanes[i], lanes[i + half], to_log2);
    }
  }
  if constexpr (kBlock > 256) {
    if (thread >= 256) store.put(thread - 256, lanes[0]);
    sync_threads();
    if (thread >= 256) return;
    if constexpr (kBlock == 512) {
      lanes[0] = merge<kTerms>(lanes[0], store.get(thread), to_log2);
    } else {
      const RowState low =
          merge<kTerms>(lanes[0], store.get(thread + 256), to_log2);
      const RowState high = merge<kTerms>(
          store.get(thread), store.get(thread + 512), to_log2);
      lanes[0] = merge<kTerms>(low, high, to_log2);
    }
  }
}

/// The whole tree, once a block. Every thread calls it; the result is returned
/// to every thread of warp 0.
template <int kTerms, int kBlock>
LOGPJIT_DEVICE RowState fold_lanes(RowState (&lanes)[kLanes / kBlock],
                                   int thread, float to_log2) {
  const StateStore<kTerms> store = tree_store<kTerms, kBlock>();
  fold_high_bits<kTerms, kBlock>(lanes, store, thread, to_log2);
  constexpr int kWarpSlots = tree_states(kBlock) - 8;
  constexpr int kSlots = kBlock == 128 ? 2 : 1;
  if (thread < 256) {
    LOGPJIT_UNROLL
    for (int i = 0; i < kSlots; ++i) {
      const RowState state = fold_warp<kTerms>(lanes[i], to_log2);
      if (thread % 32 == 0) store.put(kWarpSlots + thread / 32 + 4 * i, state);
    }
  }
  sync_threads();
  RowState row = empty_state();
  if (thread < 32) {
    row = store.get(kWarpSlots + thread % 8);
    LOGPJIT_NO_UNROLL
    for (int mask = 1; mask < 8; mask *= 2) {
      row = fold_across<kTerms>(row, mask, to_log2);
    }
  }
  return row;
}

}  // namespace logpjit::device
