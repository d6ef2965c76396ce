// Row states in shared memory.
#pragma once

#include "common/layout.cuh"
#include "common/state.cuh"

namespace logpjit::device {

/// `capacity` row states at `base`, one array a member.
template <int kTerms>
struct StateStore {
  float* base;
  int capacity;

  LOGPJIT_DEVICE void put(int index, const RowState& state) const {
    float* at = base + index;
    at[0] = state.max;
    at[capacity] = state.sum;
    int member = 2;
    if constexpr ((kTerms & kTermEntropy) != 0) {
      at[member++ * capacity] = state.weight;
    }
    if constexpr ((kTerms & kTermSquares) != 0) {
      at[member++ * capacity] = state.square;
    }
    if constexpr ((kTerms & kTermArgmax) != 0) {
      at[member++ * capacity] = float_of(static_cast<u32>(state.group));
    }
  }

  /// The same to the cluster's block `rank`; the bytes arrive at its `barrier`.
  LOGPJIT_DEVICE void send(int rank, int index, const RowState& state,
                           Mbarrier* barrier) const {
    float* at = base + index;
    send_at(at, rank, state.max, barrier);
    send_at(at + capacity, rank, state.sum, barrier);
    int member = 2;
    if constexpr ((kTerms & kTermEntropy) != 0) {
      send_at(at + member++ * capacity, rank, state.weight, barrier);
    }
    if constexpr ((kTerms & kTermSquares) != 0) {
      send_at(at + member++ * capacity, rank, state.square, barrier);
    }
    if constexpr ((kTerms & kTermArgmax) != 0) {
      send_at(at + member++ * capacity, rank,
              float_of(static_cast<u32>(state.group)), barrier);
    }
  }

  LOGPJIT_DEVICE RowState get(int index) const {
    const float* at = base + index;
    RowState state = empty_state();
    state.max = at[0];
    state.sum = at[capacity];
    int member = 2;
    if constexpr ((kTerms & kTermEntropy) != 0) {
      state.weight = at[member++ * capacity];
    }
    if constexpr ((kTerms & kTermSquares) != 0) {
      state.square = at[member++ * capacity];
    }
    if constexpr ((kTerms & kTermArgmax) != 0) {
      state.group = static_cast<i32>(bits_of(at[member++ * capacity]));
    }
    return state;
  }
};

/// Shared memory of a block that sweeps a row: the lane tree's states, then
/// every lane's total.
template <int kTerms, int kBlock>
LOGPJIT_DEVICE StateStore<kTerms> tree_store() {
  return {shared_memory<float>(0), tree_states(kBlock)};
}
template <int kTerms, int kBlock>
LOGPJIT_DEVICE StateStore<kTerms> row_totals() {
  constexpr int kBytes = tree_states(kBlock) * state_members(kTerms) * 4;
  return {shared_memory<float>(kBytes), kLanes};
}

}  // namespace logpjit::device
