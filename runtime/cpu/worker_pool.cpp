// A generation counter wakes the workers; the last one done wakes the caller.
#include "runtime/cpu/worker_pool.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "logpjit/error.hpp"

namespace logpjit::runtime {

WorkerPool::WorkerPool(int threads)
    : threads_(std::max(threads, 1)), process_(getpid()) {}

WorkerPool::~WorkerPool() {
  if (getpid() != process_) {  // joining a thread of the parent never ends
    for (std::thread& worker : workers_) worker.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::start_workers(int count) {
  while (static_cast<int>(workers_.size()) < count) {
    const int worker = static_cast<int>(workers_.size());
    try {
      workers_.emplace_back([this, worker] { work(worker); });
    } catch (const std::system_error& error) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("cannot start thread {} of {} for the CPU "
                              "device: {}; use fewer CPU threads",
                              worker + 1, count, error.what()));
    }
  }
}

void WorkerPool::run(int count, const std::function<void(int)>& job) {
  if (getpid() != process_) {
    throw Error(ErrorCode::kUnavailable,
                "the CPU device was made before this process was forked and "
                "its threads stayed in the parent; make a new one here");
  }
  const std::lock_guard one_job(one_job_);
  std::unique_lock lock(mutex_);
  start_workers(std::min(count, threads_));
  job_ = &job;
  wanted_ = unfinished_ = std::min(count, threads_);
  ++generation_;
  wake_.notify_all();
  done_.wait(lock, [this] { return unfinished_ == 0; });
  job_ = nullptr;
}

void WorkerPool::work(int worker) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
    if (stopping_) return;
    seen = generation_;
    if (worker >= wanted_) continue;
    lock.unlock();
    (*job_)(worker);
    lock.lock();
    if (--unfinished_ == 0) done_.notify_one();
  }
}

}  // namespace logpjit::runtime
