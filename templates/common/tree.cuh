// Reduction family 1: the fixed binary tree over 1024 lanes. Lane bits fold in
// the order 8, 7, then 0 to 4, then 5, 6, 9 whatever the block size. Two high
// bits go first, from shared memory: shuffling every lane costs 8 % of the
// bandwidth at V = 32000 on an H200. Bit 9 goes last: where two blocks share a
// row it lies between them, and each has half of every tile in one piece.
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

/// Four lanes that differ in bits 8 and 7: bit 8 first.
template <typename Fold>
LOGPJIT_DEVICE typename Fold::State fold_four(
    const typename Fold::State& lane, const typename Fold::State& lane_256,
    const typename Fold::State& lane_128, const typename Fold::State& lane_384,
    const Fold& fold) {
  return fold.merge(fold.merge(lane, lane_256), fold.merge(lane_128, lane_384));
}

/// The whole tree over lanes that lie in shared memory, once a block: every
/// thread calls it. The result is returned to every thread of warp 0.
template <int kBlock, typename Fold>
LOGPJIT_DEVICE typename Fold::State fold_lanes(const StateStore<Fold>& lanes,
                                               int thread, const Fold& fold) {
  const StateStore<Fold> warps = warp_store<Fold>();
  sync_threads();
  LOGPJIT_UNROLL
  for (int i = thread; i < 256; i += kBlock) {
    const int lane = i / 128 * 512 + i % 128;
    const auto state =
        fold_four(lanes.get(lane), lanes.get(lane + 256), lanes.get(lane + 128),
                  lanes.get(lane + 384), fold);
    const auto warp = fold_warp<5>(state, fold);
    if (thread % 32 == 0) warps.put(i / 32, warp);
  }
  sync_threads();
  typename Fold::State row = Fold::empty();
  if (thread < 32) row = fold_warp<3>(warps.get(thread % 8), fold);
  return row;
}

}  // namespace logpjit::device
