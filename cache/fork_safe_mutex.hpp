// A mutex that a forked child can still take.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace logpjit::cache {

/// Lockable. fork() waits for all mutexes of this type, so that none is left
/// held in the child by a thread that does not exist there. For short critical
/// sections; no thread may hold two at once, nor make one while it holds one.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  bool try_lock() { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

/// Differs between a process and its forked children: what threads had begun
/// in another generation, nobody will finish in this one.
std::uint64_t fork_generation();
/// Where it is counted, for those who ask at every launch.
const std::atomic<std::uint64_t>& fork_counter();

}  // namespace logpjit::cache
