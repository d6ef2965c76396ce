// Barriers of a block and of a cluster.
#include <fmt/format.h>

#include "runtime/cpu/collectives.hpp"
#include "runtime/cpu/group.hpp"

namespace logpjit::runtime {
namespace {

/// Counts one arrival; true if it was the last and the others go on.
bool arrive(Fiber& self, Barrier& barrier) {
  if (++barrier.arrived < barrier.expected) return false;
  barrier.arrived = 0;
  self.group->release(barrier.waiting);
  return true;
}

void sync(Fiber& self, Barrier& barrier, const Wait& where) {
  if (arrive(self, barrier)) return;
  barrier.waiting.push_back(self);
  self.group->wait(self, where);
}

Barrier& named_barrier(Fiber& self, int id, int threads) {
  if (id < 1 || id >= kNamedBarriers) {
    self.group->fail(self, fmt::format("barrier {} does not exist: ids are "
                                       "1 to {}",
                                       id, kNamedBarriers - 1));
  }
  if (threads < kWarpLanes || threads % kWarpLanes != 0 ||
      threads > self.block->threads) {
    self.group->fail(
        self, fmt::format("barrier {} of {} threads: the count must be a "
                          "multiple of {} and at most the block's {}",
                          id, threads, kWarpLanes, self.block->threads));
  }
  Barrier& barrier = self.block->named[id];
  if (barrier.arrived > 0 && barrier.expected != threads) {
    self.group->fail(self, fmt::format("barrier {} of {} threads, where "
                                       "others arrived at it for {}",
                                       id, threads, barrier.expected));
  }
  barrier.expected = threads;
  return barrier;
}

}  // namespace

void sync_threads(Fiber& self) {
  if (self.block->returned > 0) {
    self.group->fail(self, fmt::format("sync_threads after {} threads of the "
                                       "block have returned",
                                       self.block->returned));
  }
  sync(self, self.block->all, {.kind = WaitKind::kSyncThreads});
}

void sync_named(Fiber& self, int id, int threads) {
  sync(self, named_barrier(self, id, threads),
       {.kind = WaitKind::kNamed, .id = id, .threads = threads});
}

void sync_cluster(Fiber& self) {
  if (self.group->returned() > 0) {
    self.group->fail(self, fmt::format("sync_cluster after {} threads of the "
                                       "cluster have returned",
                                       self.group->returned()));
  }
  sync(self, self.group->cluster_barrier(), {.kind = WaitKind::kCluster});
}

}  // namespace logpjit::runtime
