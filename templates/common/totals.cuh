// Lane totals in shared memory: a lane's state is in registers only while a
// part of its row is taken.
#pragma once

#include "common/store.cuh"

namespace logpjit::device {

/// The lanes i * kBlock + t of thread t, each thread's in its own places.
template <typename Fold, int kBlock>
struct LaneTotals {
  using State = typename Fold::State;
  static constexpr int kHeld = kLanes / kBlock;

  const Fold& fold;
  int thread;

  /// `kBatch` lanes at a time: calls `body(first, lanes)` with empty lanes
  /// `first`, `first` + 1, ... and merges what it makes of them into the totals
  /// (or makes it the totals when they are `fresh`).
  template <int kBatch, typename Body>
  LOGPJIT_DEVICE void take(bool fresh, const Body& body) const {
    LOGPJIT_NO_UNROLL
    for (int first = 0; first < kHeld; first += kBatch) {
      State lanes[kBatch];
      LOGPJIT_UNROLL
      for (int i = 0; i < kBatch; ++i) lanes[i] = Fold::empty();
      body(first, lanes);
      LOGPJIT_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        const int place = (first + i) * kBlock + thread;
        if (!fresh)
          lanes[i] = fold.merge(lane_store<Fold>().get(place), lanes[i]);
        lane_store<Fold>().put(place, lanes[i]);
      }
    }
  }
};

}  // namespace logpjit::device
