// Warp operations: the lanes meet, the last to come computes for all.
#include <fmt/format.h>

#include "runtime/cpu/collectives.hpp"
#include "runtime/cpu/group.hpp"
#include "runtime/cpu/wait_report.hpp"

namespace logpjit::runtime {
namespace {

int lane_of(const Fiber& self) { return self.self.index % kWarpLanes; }

void check_meeting(Fiber& self, WaitKind operation) {
  const Warp& warp = *self.warp;
  const std::string name = describe({.kind = operation});
  if (warp.lanes < kWarpLanes) {
    self.group->fail(
        self, fmt::format("{} needs all {} lanes of a warp, but the last warp "
                          "of this block has {}",
                          name, kWarpLanes, warp.lanes));
  }
  if (warp.returned) {
    self.group->fail(self, fmt::format("{} needs all {} lanes of the warp, but "
                                       "thread {} has returned",
                                       name, kWarpLanes, *warp.returned));
  }
  if (warp.arrived > 0 && warp.operation != operation) {
    self.group->fail(self,
                     fmt::format("{} where lanes of the same warp wait "
                                 "at {}",
                                 name, describe({.kind = warp.operation})));
  }
}

void compute(Warp& warp) {
  switch (warp.operation) {
    case WaitKind::kShuffleXor:
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        warp.result[lane] = warp.value[lane ^ warp.argument[lane]];
      }
      return;
    case WaitKind::kShuffle:
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        warp.result[lane] = warp.value[warp.argument[lane]];
      }
      return;
    case WaitKind::kBallot: {
      std::uint32_t votes = 0;
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        votes |= warp.value[lane] << lane;
      }
      warp.result.fill(votes);
      return;
    }
    default:
      return;
  }
}

// A lane cannot overwrite a result that another has still to read: the next
// meeting is complete only once every lane has left this one.
std::uint32_t meet(Fiber& self, WaitKind operation, std::uint32_t value,
                   int argument) {
  Warp& warp = *self.warp;
  const bool odd = warp.lanes < kWarpLanes || warp.returned ||
                   (warp.arrived > 0 && warp.operation != operation);
  if (odd) check_meeting(self, operation);
  const int lane = lane_of(self);
  warp.operation = operation;
  warp.value[lane] = value;
  warp.argument[lane] = argument;
  if (++warp.arrived == kWarpLanes) {
    warp.arrived = 0;
    compute(warp);
    // First: a warp that stays together stays in the nearest cache.
    self.group->release_first(warp.waiting);
  } else {
    warp.waiting.push_back(self);
    self.group->wait(self, {.kind = operation});
  }
  return warp.result[lane];
}

void check_lane(Fiber& self, WaitKind operation, int lane) {
  if (lane >= 0 && lane < kWarpLanes) return;
  self.group->fail(
      self, fmt::format("{} with {}, which is not within 0 to {}",
                        describe({.kind = operation}), lane, kWarpLanes - 1));
}

}  // namespace

void sync_warp(Fiber& self) { meet(self, WaitKind::kSyncWarp, 0, 0); }

std::uint32_t shuffle_xor(Fiber& self, std::uint32_t value, int mask) {
  check_lane(self, WaitKind::kShuffleXor, mask);
  return meet(self, WaitKind::kShuffleXor, value, mask);
}

std::uint32_t shuffle(Fiber& self, std::uint32_t value, int lane) {
  check_lane(self, WaitKind::kShuffle, lane);
  return meet(self, WaitKind::kShuffle, value, lane);
}

std::uint32_t ballot(Fiber& self, bool value) {
  return meet(self, WaitKind::kBallot, value ? 1 : 0, 0);
}

}  // namespace logpjit::runtime
