// Schedules fibers: each runs until it waits, then the next that can run does;
// when none can and not all are over, they would wait for ever.
#include "runtime/cpu/group.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "logpjit/error.hpp"
#include "runtime/cpu/wait_report.hpp"

namespace logpjit::runtime {

constinit thread_local Fiber* running_fiber = nullptr;

void Group::run(const GroupWork& work, std::int64_t first_block) {
  Context here;
  scheduler_ = &here;
  work_ = &work;
  prepare(work.shape);
  for (int rank = 0; rank < static_cast<int>(blocks_.size()); ++rank) {
    start_block(rank, first_block + rank);
  }
  enqueue_all();
  schedule();
  if (!cancelled_) check_shared_memory();
  if (cancelled_) throw Error(ErrorCode::kInternal, failure_);
}

void Group::prepare(const LaunchShape& shape) {
  const int block = static_cast<int>(shape.block);
  const int cluster = static_cast<int>(shape.cluster);
  threads_ = block * cluster;
  while (static_cast<int>(fibers_.size()) < threads_) {
    fibers_.emplace_back(*this, stacks_.take(), &Group::fiber_main);
  }
  const std::size_t warps = (block + kWarpLanes - 1) / kWarpLanes;
  blocks_.assign(cluster, Block{});
  warps_.assign(shape.cluster * warps, Warp{});
  if (shared_memory_.size() < blocks_.size()) {
    shared_memory_.resize(blocks_.size());
  }
  cluster_barrier_ = Barrier{.expected = threads_};
  ready_.clear();
  returned_ = 0;
  cancelled_ = false;
}

void Group::start_block(int rank, std::int64_t index) {
  const LaunchShape& shape = work_->shape;
  const int threads = static_cast<int>(shape.block);
  const int warps = (threads + kWarpLanes - 1) / kWarpLanes;
  SharedMemory& memory = shared_memory_[rank];
  memory.reset(shape.dynamic_shared_bytes);
  Block& block = blocks_[rank];
  block.index = index;
  block.threads = threads;
  block.shared_memory = memory.data();
  block.shared_bytes = memory.size();
  block.all.expected = threads;
  for (int thread = 0; thread < threads; ++thread) {
    Fiber& fiber = fibers_[rank * threads + thread];
    fiber.self = {index, shape.grid, thread, rank, memory.data()};
    fiber.block = &block;
    fiber.warp = &warps_[rank * warps + thread / kWarpLanes];
    ++fiber.warp->lanes;
    fiber.wait = {};
    fiber.returned = false;
  }
}

void Group::enqueue_all() {
  const bool forward = work_->order == ThreadOrder::kForward;
  for (int turn = 0; turn < threads_; ++turn) {
    ready_.push_back(fibers_[forward ? turn : threads_ - 1 - turn]);
  }
}

void Group::schedule() {
  while (returned_ < threads_) {
    if (ready_.empty()) {
      cancel(
          fmt::format("kernel {}: its threads wait for ever: {}; every "
                      "thread must reach every barrier",
                      work_->kernel, describe_threads(*this)));
      continue;
    }
    switch_to_next(*scheduler_);
  }
}

void Group::fail(const Fiber& self, const std::string& what) {
  cancel(fmt::format("kernel {}, block {}, thread {}: {}", work_->kernel,
                     self.self.block, self.self.index, what));
  throw Cancelled{};
}

// Only the first reason counts: the others are its consequences.
void Group::cancel(std::string why) {
  if (std::exchange(cancelled_, true)) return;
  failure_ = std::move(why);
  ready_.clear();
  for (int thread = 0; thread < threads_; ++thread) {
    Fiber& fiber = fibers_[thread];
    if (fiber.returned || &fiber == running_fiber) continue;
    ready_.push_back(fiber);
  }
}

void Group::fiber_main(void* fiber) {
  Fiber& self = *static_cast<Fiber*>(fiber);
  for (;;) {
    self.group->run_kernel(self);
    self.group->finish(self);
  }
}

void Group::run_kernel(Fiber& self) {
  if (cancelled_) return;
  try {
    work_->run(work_->arguments);
    return;
  } catch (const Cancelled&) {
    return;
  } catch (const std::exception& error) {
    cancel(fmt::format("kernel {}, block {}, thread {}: threw: {}",
                       work_->kernel, self.self.block, self.self.index,
                       error.what()));
  } catch (...) {
    cancel(fmt::format("kernel {}, block {}, thread {}: threw something",
                       work_->kernel, self.self.block, self.self.index));
  }
}

void Group::finish(Fiber& self) {
  if (!cancelled_) check_return(self);
  self.returned = true;
  ++self.block->returned;
  self.warp->returned = self.self.index;
  ++returned_;
  switch_to_next(self.context);
}

void Group::check_return(const Fiber& self) {
  const char* where = nullptr;
  if (self.warp->arrived > 0) where = "an operation of its warp";
  if (self.block->all.arrived > 0) where = "sync_threads";
  if (cluster_barrier_.arrived > 0) where = "sync_cluster";
  if (where == nullptr) return;
  cancel(
      fmt::format("kernel {}, block {}, thread {}: returned while others "
                  "wait for it at {}: {}",
                  work_->kernel, self.self.block, self.self.index, where,
                  describe_threads(*this)));
}

void Group::check_shared_memory() {
  for (std::size_t rank = 0; rank < blocks_.size(); ++rank) {
    if (shared_memory_[rank].intact()) continue;
    cancel(fmt::format(
        "kernel {}, block {}: wrote outside its {} bytes of "
        "dynamic shared memory",
        work_->kernel, blocks_[rank].index, blocks_[rank].shared_bytes));
    return;
  }
}

}  // namespace logpjit::runtime
