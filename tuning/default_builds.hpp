// Default configurations of several keys, built side by side ahead of tuning:
// so each key has a result early, however long single compiles take.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config_lookup.hpp"
#include "runtime/engine.hpp"

namespace logpjit::tuning {

class DefaultBuilds {
 public:
  /// What one took, milliseconds, and whether a cache had it.
  struct One {
    KernelSpec spec{};
    LaunchConfig config{};
    double ms = 0;        ///< from its begin to its end, others beside it
    double share_ms = 0;  ///< of the time that all took together
    bool cache_hit = false;
    bool is_done = false;

    int rank() const;
  };

  explicit DefaultBuilds(runtime::Engine& engine) : engine_(engine) {}

  using Clock = std::chrono::steady_clock;

  /// One for each specification and default among `shapes`, those that compile
  /// quickly first, on so many threads. None begins once `stop` says true or
  /// when it would probably end after `end`; one that is at work then is ended
  /// if it can be. Failures are left to whoever wants the kernel.
  void build(const std::vector<runtime::TunedShape>& shapes, int threads,
             Clock::time_point end, const std::function<bool()>& stop);

  /// Whether tuning the key will find its default; true where none were built.
  bool has(const runtime::TunedShape& shape) const;
  /// What building the key's default took, to the first who asks.
  std::optional<One> take(const runtime::TunedShape& shape);
  /// Of those that were built, milliseconds; 0 when there are none.
  double mean_ms() const;

 private:
  void add(const runtime::TunedShape& shape);
  void build_one(One& one);
  std::vector<One>::const_iterator find(const runtime::TunedShape& shape) const;

  runtime::Engine& engine_;
  std::vector<One> all_;
  std::atomic<double> sum_ms_ = 0;
  std::atomic<int> built_ = 0;
};

}  // namespace logpjit::tuning
