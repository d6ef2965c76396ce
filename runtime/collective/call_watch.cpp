// The thread that looks at the clock.
#include "runtime/collective/call_watch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cache/fork_safe_mutex.hpp"

namespace logpjit::runtime {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

CallWatch::CallWatch(double timeout_s, std::function<void()> give_up)
    : timeout_s_(timeout_s),
      give_up_(std::move(give_up)),
      process_(cache::fork_generation()) {}

CallWatch::~CallWatch() {
  if (!thread_.joinable()) return;
  if (process_ != cache::fork_generation()) {  // it stayed in the parent
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void CallWatch::begin() {
  if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
  begun_ = now_ns();
}

void CallWatch::watch() {
  constexpr double kLooks = 8;
  constexpr double kLongestPause = 0.5;
  const std::chrono::duration<double> pause(
      std::min(timeout_s_ / kLooks, kLongestPause));
  const auto longest = static_cast<std::int64_t>(timeout_s_ * 1e9);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, pause, [this] { return stopping_; })) {
    const std::int64_t begun = begun_;
    if (begun == 0 || now_ns() - begun < longest) continue;
    gave_up_ = true;
    give_up_();
    return;
  }
}

}  // namespace logpjit::runtime
