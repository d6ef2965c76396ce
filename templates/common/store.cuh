// Row states in shared memory, and what a reduction must know of a state.
#pragma once

#include "common/layout.cuh"
#include "common/state.cuh"

namespace logpjit::device {

/// A fold names a kind of state: its members as floats, maxima first, and how
/// two or many merge. The lane tree and the stores work with any fold.
template <int kTerms>
struct RowFold {
  using State = RowState;
  static constexpr int kMembers = state_members(kTerms);
  static constexpr int kMaxima = 1;

  float to_log2;

  LOGPJIT_DEVICE static void pack(const State& state,
                                  float (&members)[kMembers]) {
    members[0] = state.max;
    members[1] = state.sum;
    int next = 2;
    if constexpr ((kTerms & kTermEntropy) != 0) members[next++] = state.weight;
    if constexpr ((kTerms & kTermSquares) != 0) members[next++] = state.square;
    if constexpr ((kTerms & kTermArgmax) != 0) {
      members[next++] = float_of(static_cast<u32>(state.group));
    }
  }
  LOGPJIT_DEVICE static State unpack(const float (&members)[kMembers]) {
    State state = empty_state();
    state.max = members[0];
    state.sum = members[1];
    int next = 2;
    if constexpr ((kTerms & kTermEntropy) != 0) state.weight = members[next++];
    if constexpr ((kTerms & kTermSquares) != 0) state.square = members[next++];
    if constexpr ((kTerms & kTermArgmax) != 0) {
      state.group = static_cast<i32>(bits_of(members[next++]));
    }
    return state;
  }
  LOGPJIT_DEVICE static State empty() { return empty_state(); }
  LOGPJIT_DEVICE State merge(const State& a, const State& b) const {
    return device::merge<kTerms>(a, b, to_log2);
  }
  /// The state about the maximum of several, `maxima[0]`.
  LOGPJIT_DEVICE State raised(State state,
                              const float (&maxima)[kMaxima]) const {
    if (state.max != maxima[0]) state.group = -1;
    raise<kTerms>(state, maxima[0], to_log2);
    return state;
  }
  /// Member `index` of two states about the same maximum, as one. Groups are
  /// numbers in float bits, -1 none: the first one wins.
  LOGPJIT_DEVICE static float combine(int index, float a, float b) {
    if ((kTerms & kTermArgmax) != 0 && index == kMembers - 1) {
      return bits_of(a) < bits_of(b) ? a : b;
    }
    return a + b;
  }
};

/// `capacity` states at `base`, one array a member.
template <typename Fold>
struct StateStore {
  using State = typename Fold::State;

  float* base;
  int capacity;

  LOGPJIT_DEVICE void put(int index, const State& state) const {
    float members[Fold::kMembers];
    Fold::pack(state, members);
    LOGPJIT_UNROLL
    for (int i = 0; i < Fold::kMembers; ++i) {
      base[i * capacity + index] = members[i];
    }
  }

  /// The same to the cluster's block `rank`; the bytes arrive at its `barrier`.
  LOGPJIT_DEVICE void send(int rank, int index, const State& state,
                           Mbarrier* barrier) const {
    float members[Fold::kMembers];
    Fold::pack(state, members);
    LOGPJIT_UNROLL
    for (int i = 0; i < Fold::kMembers; ++i) {
      send_at(base + i * capacity + index, rank, members[i], barrier);
    }
  }

  /// The same in the shared memory of the cluster's block `rank`; seen there
  /// after the next sync_cluster.
  LOGPJIT_DEVICE void put_at(int rank, int index, const State& state) const {
    float members[Fold::kMembers];
    Fold::pack(state, members);
    LOGPJIT_UNROLL
    for (int i = 0; i < Fold::kMembers; ++i) {
      store_at(base + i * capacity + index, rank, members[i]);
    }
  }

  LOGPJIT_DEVICE State get(int index) const {
    float members[Fold::kMembers];
    LOGPJIT_UNROLL
    for (int i = 0; i < Fold::kMembers; ++i) {
      members[i] = base[i * capacity + index];
    }
    return Fold::unpack(members);
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
