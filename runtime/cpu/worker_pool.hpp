// OS threads that wait for work.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace logpjit::runtime {

/// Threads start when first needed and are joined by the destructor. Safe to
/// share between threads; jobs run one after the other. A child process made by
/// fork has none of the threads: there `run` throws.
class WorkerPool {
 public:
  /// At most `threads` workers (at least 1).
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return threads_; }

  /// Calls `job(worker)` once on each of the workers 0 .. count-1, where a
  /// number always means the same OS thread, and returns when all are done.
  /// `job` must not throw. Throws Error{kUnavailable} in a forked child or if
  /// no thread can be started.
  void run(int count, const std::function<void(int)>& job);

 private:
  void start_workers(int count);
  void work(int worker);

  const int threads_;
  const pid_t process_;
  std::mutex one_job_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> workers_;
  const std::function<void(int)>* job_ = nullptr;
  std::uint64_t generation_ = 0;
  int wanted_ = 0;
  int unfinished_ = 0;
  bool stopping_ = false;
};

}  // namespace logpjit::runtime
