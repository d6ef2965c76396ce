// Tuning of one specification and row count, step by step.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tuning/bench_subject.hpp"
#include "tuning/device_tensor.hpp"
#include "tuning/throttle_watch.hpp"
#include "tuning/tuner.hpp"

namespace logpjit::tuning {

/// As much of a message as a report has room for.
inline std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// Throws what the subject's or the default's failure is; candidates that fail
/// say so in the result. A driver error that may concern the whole device ends
/// as an Error, too.
class KeyTuner {
 public:
  using Clock = std::chrono::steady_clock;

  /// What candidates are measured beside. `clock` may be null.
  struct Beside {
    const Floors& floors;
    runtime::ClockMeter* clock = nullptr;
  };

  /// `key.times` says what was spent on it before.
  KeyTuner(Runtime& runtime, Beside beside, const TuneOptions& options,
           KeyResult& key, Clock::time_point deadline);

  void run();

 private:
  /// Milliseconds of rounds that count, and of the one that is going on.
  struct Samples {
    std::vector<double> ms{};
    std::size_t kept = 0;

    void keep() { kept = ms.size(); }
    void drop() { ms.resize(std::min(kept, ms.size())); }
    /// Infinite without any.
    double least() const;
  };

  struct Loaded {
    std::size_t candidate = 0;
    Kernel kernel{};
    std::unique_ptr<TimedWork> work{};
    Samples samples{};
  };

  void add(std::vector<LaunchConfig> configs);
  void add_neighbours(std::span<const LaunchConfig> configs);
  /// Whether nothing had to be compiled so far.
  bool is_cached() const;
  bool has_image(const LaunchConfig& config) const;
  /// Of what a key usually takes.
  double seconds_left(bool is_cached) const;
  std::size_t affordable(std::span<const LaunchConfig> near) const;
  void build(std::size_t first);
  void expect_build_time();
  bool may_build(const Candidate& candidate, Clock::time_point end);
  void build_one(Candidate& candidate);
  void check_default();
  void verify(std::size_t first);
  bool verify_one(Candidate& candidate, Kernel& kernel);
  double run_ms();
  void measure();
  bool sample_round();
  void sample_candidate(Loaded& loaded);
  void sample(Loaded& loaded);
  void measure_floors();
  void warm_up(TimedWork& work) const;
  void end_round(void (Samples::*end)());
  void give_up_slow();
  double give_up(std::size_t samples) const;
  void finish();
  bool reached_goal() const;
  /// Of the shortest sample.
  const Loaded& best() const;
  /// Whether the deadline will be past after `ms` more, or the run is to end.
  bool is_over(double ms = 0) const;

  Runtime& runtime_;
  const Floors& floors_;
  ThrottleWatch watch_;
  const TuneOptions& options_;
  KeyResult& key_;
  /// As if all of the key's time had been spent here.
  const Clock::time_point begin_;
  const Clock::time_point deadline_;
  std::unique_ptr<TunableSubject> subject_;
  std::vector<std::byte> expected_;
  double expected_ms_ = 0;
  double quickest_ms_ = 0;  ///< one run, of all that were verified
  std::atomic<double> longest_build_ms_ = 0;
  std::vector<Loaded> loaded_;
  DeviceTensor copy_from_;
  DeviceTensor copy_to_;
  std::unique_ptr<TimedWork> floor_;
  std::unique_ptr<TimedWork> copy_;
  Samples floor_samples_;
  Samples copy_samples_;
};

}  // namespace logpjit::tuning
