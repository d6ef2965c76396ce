// Runs the threads of one cluster of blocks as fibers on the calling OS thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cpu/fiber.hpp"
#include "runtime/cpu/shared_memory.hpp"
#include "runtime/cpu/stack_pool.hpp"
#include "runtime/device.hpp"

namespace logpjit::runtime {

/// In which order the threads of a group run between barriers.
enum class ThreadOrder { kForward, kBackward };

/// A launch as a group sees it.
struct GroupWork {
  const char* kernel;  ///< for messages
  device::HostRun* run;
  const void* arguments;
  LaunchShape shape;
  ThreadOrder order = ThreadOrder::kForward;
};

/// Thrown through a kernel's frames to end it.
struct Cancelled {};

/// Belongs to the OS thread that first runs it. Fibers, stacks and shared
/// memory are kept from one run to the next.
class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Runs blocks `first_block` .. + shape.cluster of `work` to their end.
  /// Throws Error{kInternal} naming kernel, block and thread where they misuse
  /// a barrier or wait for ever; every thread is unwound by then.
  void run(const GroupWork& work, std::int64_t first_block);

  // For the collective operations, called on a fiber of this group.

  /// Suspends `self`, which the caller has put into a queue, until released.
  void wait(Fiber& self, const Wait& where);
  /// Lets all of `queue` run after, or before, what can run already.
  void release(FiberQueue& queue) { ready_.splice_back(queue); }
  void release_first(FiberQueue& queue) { ready_.splice_front(queue); }
  /// Ends the run with "kernel, block, thread: what".
  [[noreturn]] void fail(const Fiber& self, const std::string& what);

  std::span<Block> blocks() { return {blocks_.data(), blocks_.size()}; }
  Barrier& cluster_barrier() { return cluster_barrier_; }
  int returned() const { return returned_; }
  /// Every thread of the running cluster.
  const std::deque<Fiber>& fibers() const { return fibers_; }
  int threads() const { return threads_; }

 private:
  void prepare(const LaunchShape& shape);
  void start_block(int rank, std::int64_t index);
  void enqueue_all();
  void schedule();
  void cancel(std::string why);
  void check_shared_memory();
  static void fiber_main(void* fiber);
  void run_kernel(Fiber& self);
  void finish(Fiber& self);
  void check_return(const Fiber& self);
  void switch_to_next(Context& from);

  StackPool stacks_;
  std::deque<Fiber> fibers_;  // the first `threads_` are in use
  std::vector<Block> blocks_;
  std::vector<Warp> warps_;
  std::vector<SharedMemory> shared_memory_;
  const GroupWork* work_ = nullptr;
  int threads_ = 0;
  int returned_ = 0;
  Barrier cluster_barrier_;
  FiberQueue ready_;
  Context* scheduler_ = nullptr;
  bool cancelled_ = false;
  std::string failure_;
};

/// The fiber that runs on this OS thread; null outside a kernel. Read at every
/// operation of a kernel, where a call per access would show.
[[gnu::tls_model(
    "initial-exec")]] extern constinit thread_local Fiber* running_fiber;

inline void Group::switch_to_next(Context& from) {
  Fiber* next = ready_.pop_front();
  running_fiber = next;
  from.switch_to(next != nullptr ? next->context : *scheduler_);
}

inline void Group::wait(Fiber& self, const Wait& where) {
  self.wait = where;
  switch_to_next(self.context);
  self.wait = {};
  if (cancelled_) throw Cancelled{};
}

}  // namespace logpjit::runtime
