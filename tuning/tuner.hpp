// Finds the fastest launch configuration by measuring.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/config_store.hpp"
#include "logpjit/runtime.hpp"
#include "tuning/bench_subject.hpp"
#include "tuning/default_builds.hpp"
#include "tuning/search_space.hpp"
#include "tuning/selector.hpp"
#include "tuning/tune_result.hpp"

namespace logpjit::tuning {

struct TuneOptions {
  /// Seconds for all keys together; what is left is shared among those that
  /// remain.
  double budget_s = 180;
  std::size_t first_candidates = 24;   ///< the default and a spread
  std::size_t second_candidates = 16;  ///< then neighbours of the best
  int compile_threads = 4;
  MeasureOptions measure{.rounds = 7, .graph_ms = 1};
  SelectOptions select;
  /// No further candidates once the best reaches this share of the speed of
  /// plain kernels over the same bytes.
  double stop_at = 0.995;
  /// A candidate is given up when its first sample is this many times the best,
  /// and for less the more samples there are.
  double give_up = 1.3;
  /// Fewer samples of the default than these are no result.
  std::size_t least_samples = 3;
  /// No further round of samples once a stage has measured for so long, if all
  /// have the least: long launches say enough in few.
  double enough_ms = 250;
  /// Fewer neighbours of the best where all would take a key longer than so,
  /// and fewer rounds; the second is for keys whose images are cached.
  double key_s = 3.5;
  double cached_key_s = 0.75;
  bool force = false;  ///< measure again what the store has
  /// Asked often; true = end now, with what is measured kept.
  std::function<bool()> interrupted = [] { return false; };
  /// Called before the defaults of so many keys are built side by side.
  std::function<void(std::size_t)> on_defaults = [](auto) {};
  /// Called as each key begins, with its place and how many there are.
  std::function<void(const runtime::TunedShape&, std::size_t, std::size_t)>
      on_key = [](const auto&, auto, auto) {};

  /// What suits the device: few candidates and rounds on a CPU.
  static TuneOptions for_device(const DeviceInfo& device);
};

/// Tunes one device. For one thread; compiles on several. A candidate must give
/// the default's results bit for bit, and the default must agree with the
/// float64 reference. Winners go to the store one by one, so that whatever ends
/// the run loses at most one key.
class Tuner {
 public:
  Tuner(Runtime& runtime, cache::ConfigStore& store, TuneOptions options);
  ~Tuner();

  /// Never throws for a key that fails; a device that is lost ends the run,
  /// with the reason in `interrupted`. Error{kUnsupported} while work on the
  /// calling thread's device is being captured.
  TuneResult run(std::span<const runtime::TunedShape> shapes);

 private:
  using Clock = std::chrono::steady_clock;

  void build_defaults(const std::vector<runtime::TunedShape>& open);
  std::string why_stop(const runtime::TunedShape& shape, double usual_s) const;
  void tune_open(const std::vector<std::size_t>& open, TuneResult& result);
  KeyResult tune(const runtime::TunedShape& shape, Clock::time_point deadline);
  bool take_stored(KeyResult& key);
  void store(KeyResult& key);
  bool device_is_lost();
  const Floors& floors();
  void prepare_floors();

  Runtime& runtime_;
  cache::ConfigStore& store_;
  const TuneOptions options_;
  std::unique_ptr<Floors> floors_;
  std::unique_ptr<runtime::ClockMeter> clock_;
  DefaultBuilds defaults_;
  Clock::time_point begin_;
  bool stored_ = true;
};

}  // namespace logpjit::tuning
