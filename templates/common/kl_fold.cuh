// The KL state as the lane tree sees it.
#pragma once

#include "common/kl_state.cuh"
#include "common/store.cuh"

namespace logpjit::device {

struct KlFold {
  using State = KlState;
  static constexpr int kMembers = kKlMembers;
  static constexpr int kMaxima = 2;

  RowScale scale_a;
  RowScale scale_b;

  LOGPJIT_DEVICE static void pack(const State& state,
                                  float (&members)[kMembers]) {
    members[0] = state.max_a;
    members[1] = state.max_b;
    members[2] = state.sum_a;
    members[3] = state.sum_b;
    members[4] = state.cross;
  }
  LOGPJIT_DEVICE static State unpack(const float (&members)[kMembers]) {
    return {members[0], members[2], members[1], members[3], members[4]};
  }
  LOGPJIT_DEVICE static State empty() { return empty_kl_state(); }
  LOGPJIT_DEVICE State merge(const State& x, const State& y) const {
    return device::merge(x, y, scale_a, scale_b);
  }
  LOGPJIT_DEVICE State raised(State state,
                              const float (&maxima)[kMaxima]) const {
    raise(state, maxima[0], maxima[1], scale_a, scale_b);
    return state;
  }
  LOGPJIT_DEVICE static float combine(int, float a, float b) { return a + b; }
};

}  // namespace logpjit::device
