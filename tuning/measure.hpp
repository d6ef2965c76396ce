// Honest times of device work: interleaved, repeated, many launches at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/device.hpp"
#include "tuning/throttle_watch.hpp"

namespace logpjit::tuning {

/// Starts one launch on the stream. `turn` counts the launches, so that work
/// can go round several sets of buffers.
using Work = std::function<void(CUstream_st* stream, int turn)>;

struct Timing {
  double median_ms = 0;  ///< of one launch
  /// Between the quartiles, relative to the median.
  double spread = 0;
  double low_ms = 0;   ///< the first quartile
  double high_ms = 0;  ///< the third
  std::vector<double> rounds_ms;
};

/// Median and spread of at least one sample.
Timing timing_of(std::vector<double> samples_ms);

struct MeasureOptions {
  int rounds = 9;
  double graph_ms = 20;  ///< about as long as one graph of launches takes
  int most_launches = 100;
};

/// One work in a graph of many launches, fewer when each is long. The device
/// must outlive it.
class TimedWork {
 public:
  /// Records the graph and runs it once, which is not counted; unless there is
  /// to be one launch in it at most.
  TimedWork(runtime::Device& device, Work work, const MeasureOptions& options);
  /// The same with so many launches, known from a work like it.
  TimedWork(runtime::Device& device, Work work, int launches);

  /// Milliseconds of one launch: one replay, divided by the launches.
  double sample() { return graph_->replay_ms() / launches_; }
  int launches() const { return launches_; }
  /// The time that said how many launches there are, where that is one: it is
  /// as good as a sample.
  std::optional<double> calibration() const { return calibration_; }

 private:
  void record(runtime::Device& device, int launches);

  std::shared_ptr<const Work> work_;
  std::shared_ptr<int> turn_;
  int launches_ = 1;
  std::optional<double> calibration_;
  std::unique_ptr<runtime::Graph> graph_;
};

/// Times each work in every round, in turn, so that drift meets all alike.
/// Rounds that `watch` finds spoilt are repeated.
std::vector<Timing> measure(runtime::Device& device,
                            std::span<const Work> works,
                            const MeasureOptions& options,
                            ThrottleWatch& watch);

}  // namespace logpjit::tuning
