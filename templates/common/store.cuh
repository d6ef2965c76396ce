// Row states in shared memory, and what a reduction must know of a state.
#pragma once

#include "common/layout.cuh"
#include "common/state.cuh"
#include "common/warp.cuh"

namespace logpjit::device {

/// A fold names a kind of state: its members as floats, and how two or a warp's
/// merge. The lane tree and the stores work with any fold.
template <int kTerms>
struct RowFold {
  using State = RowState;
  static constexpr int kMembers = state_members(kTerms);

  float to_log2;

  /// Calls `put(to, member)` for the members of a state, `stride` apart.
  template <typename Put>
  LOGPJIT_DEVICE static void write(const State& state, float* to, int stride,
                                   const Put& put) {
    put(to, state.max);
    put(to += stride, state.sum);
    if constexpr ((kTerms & kTermEntropy) != 0) put(to += stride, state.weight);
    if constexpr ((kTerms & kTermSquares) != 0) put(to += stride, state.square);
    if constexpr ((kTerms & kTermArgmax) != 0) {
      put(to += stride, float_of(static_cast<u32>(state.group)));
    }
  }
  /// The state that was written so.
  LOGPJIT_DEVICE static State read(const float* from, int stride) {
    State state = empty_state();
    state.max = *from;
    state.sum = *(from += stride);
    if constexpr ((kTerms & kTermEntropy) != 0) {
      state.weight = *(from += stride);
    }
    if constexpr ((kTerms & kTermSquares) != 0) {
      state.square = *(from += stride);
    }
    if constexpr ((kTerms & kTermArgmax) != 0) {
      state.group = static_cast<i32>(bits_of(*(from += stride)));
    }
    return state;
  }

  LOGPJIT_DEVICE static State empty() { return empty_state(); }
  LOGPJIT_DEVICE State merge(const State& a, const State& b) const {
    return device::merge<kTerms>(a, b, to_log2);
  }
  /// The states of the lanes that differ in bits 0 to `kBits` - 1: the maximum
  /// first, then every state is rescaled once, then the sums. (Merging level by
  /// level would rescale at each, and the approximate exponential's bias would
  /// add up.)
  template <int kBits>
  LOGPJIT_DEVICE State merge_warp(State state) const {
    const float max = warp_max<kBits>(state.max);
    if constexpr ((kTerms & kTermArgmax) != 0) {
      state.group = warp_first<kBits>(state.max == max ? state.group : -1);
    }
    raise<kTerms>(state, max, to_log2);
    state.sum = warp_sum<kBits>(state.sum);
    if constexpr ((kTerms & kTermEntropy) != 0) {
      state.weight = warp_sum<kBits>(state.weight);
    }
    if constexpr ((kTerms & kTermSquares) != 0) {
      state.square = warp_sum<kBits>(state.square);
    }
    return state;
  }
};

/// `capacity` states at `base`, one array a member.
template <typename Fold>
struct StateStore {
  using State = typename Fold::State;

  float* base;
  int capacity;

  LOGPJIT_DEVICE void put(int index, const State& state) const {
    Fold::write(state, base + index, capacity,
                [](float* to, float member) { *to = member; });
  }

  /// The same to the cluster's block `rank`; the bytes arrive at its `barrier`.
  LOGPJIT_DEVICE void send(int rank, int index, const State& state,
                           Mbarrier* barrier) const {
    Fold::write(state, base + index, capacity, [&](float* to, float member) {
      send_at(to, rank, member, barrier);
    });
  }

  /// The same in the shared memory of the cluster's block `rank`; seen there
  /// after the next sync_cluster.
  LOGPJIT_DEVICE void put_at(int rank, int index, const State& state) const {
    Fold::write(state, base + index, capacity,
                [&](float* to, float member) { store_at(to, rank, member); });
  }

  LOGPJIT_DEVICE State get(int index) const {
    return Fold::read(base + index, capacity);
  }
};

/// The lane tree's warps, first in a block's shared memory.
template <typename Fold>
LOGPJIT_DEVICE StateStore<Fold> warp_store() {
  return {shared_memory<float>(0), kTreeWarps};
}
/// Every lane of a row, behind them.
template <typename Fold>
LOGPJIT_DEVICE StateStore<Fold> lane_store() {
  return {shared_memory<float>(kTreeWarps * Fold::kMembers * 4), kLanes};
}

}  // namespace logpjit::device
