// The KL state as the lane tree sees it.
#pragma once

#include "common/kl_state.cuh"
#include "common/store.cuh"

namespace logpjit::device {

struct KlFold {
  using State = KlState;
  static constexpr int kMembers = kKlMembers;

  RowScale scale_a;
  RowScale scale_b;

  template <typename Put>
  LOGPJIT_DEVICE static void write(const State& state, float* to, int stride,
                                   const Put& put) {
    put(to, state.max_a);
    put(to + stride, state.max_b);
    put(to + 2 * stride, state.sum_a);
    put(to + 3 * stride, state.sum_b);
    put(to + 4 * stride, state.cross);
  }
  LOGPJIT_DEVICE static State read(const float* from, int stride) {
    return {from[0], from[2 * stride], from[stride], from[3 * stride],
            from[4 * stride]};
  }

  LOGPJIT_DEVICE static State empty() { return empty_kl_state(); }
  LOGPJIT_DEVICE State merge(const State& x, const State& y) const {
    return device::merge(x, y, scale_a, scale_b);
  }
  template <int kBits>
  LOGPJIT_DEVICE State merge_warp(State state) const {
    raise(state, warp_max<kBits>(state.max_a), warp_max<kBits>(state.max_b),
          scale_a, scale_b);
    state.sum_a = warp_sum<kBits>(state.sum_a);
    state.sum_b = warp_sum<kBits>(state.sum_b);
    state.cross = warp_sum<kBits>(state.cross);
    return state;
  }
};

}  // namespace logpjit::device
