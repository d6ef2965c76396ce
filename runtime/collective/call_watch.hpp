// Ends calls of a communication library that do not come back.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace logpjit::runtime {

/// NCCL connects ranks inside their first collectives and waits there, on the
/// host, for as long as a rank does not come; only another thread can end that.
/// One, started by the first call, looks several times per time-out. Watched
/// calls are made by one thread at a time and cost two atomic stores each.
class CallWatch {
 public:
  /// `give_up` makes the call return; called once, by the watching thread.
  CallWatch(double timeout_s, std::function<void()> give_up);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  /// A call lasts as long as this.
  class Scope {
   public:
    explicit Scope(CallWatch& watch) : watch_(watch) { watch_.begin(); }
    ~Scope() { watch_.begun_ = 0; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CallWatch& watch_;
  };

  double timeout_s() const { return timeout_s_; }
  bool gave_up() const { return gave_up_; }

 private:
  void begin();
  void watch();

  const double timeout_s_;
  const std::function<void()> give_up_;
  const std::uint64_t process_;
  std::atomic<std::int64_t> begun_ = 0;  ///< ns of the steady clock; 0 = none
  std::atomic<bool> gave_up_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace logpjit::runtime
