// Reduction family 1: the fixed binary tree over 1024 lanes. Lane bits fold in
// the order 8, 7, then 0 to 4, then 5, 6, 9 whatever the block size. Two high
// bits go first, from shared memory: shuffling every lane costs 8 % of the
// bandwidth at V = 32000 on an H200. Bit 9 goes last: where two blocks share a
// row it lies between them, and each has half of every tile in one piece.
#pragma once

#include "common/store.cuh"

namespace logpjit::device {

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
  constexpr int kWarps = kBlock / 32;
  constexpr int kRounds = kWarps < kTreeWarps ? kTreeWarps / kWarps : 1;
  const StateStore<Fold> warps = warp_store<Fold>();
  const int first = warp_of(thread);
  sync_threads();
  LOGPJIT_UNROLL
  for (int round = 0; round < kRounds; ++round) {
    const int warp = round * kWarps + first;
    if (kWarps > kTreeWarps && warp >= kTreeWarps) continue;
    const int lane = warp / 4 * 512 + warp % 4 * 32 + thread % 32;
    const auto state = fold.template merge_warp<5>(
        fold_four(lanes.get(lane), lanes.get(lane + 256), lanes.get(lane + 128),
                  lanes.get(lane + 384), fold));
    if (thread % 32 == 0) warps.put(warp, state);
  }
  sync_threads();
  if (first != 0) return Fold::empty();
  return fold.template merge_warp<3>(warps.get(thread % kTreeWarps));
}

}  // namespace logpjit::device
