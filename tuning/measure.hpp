// Honest times of device work: interleaved, repeated, many launches at once.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/device.hpp"

namespace logpjit::tuning {

/// Starts one launch on the stream. `turn` counts the launches, so that work
/// can go round several sets of buffers.
using Work = std::function<void(CUstream_st* stream, int turn)>;

struct Timing {
  double median_ms = 0;  ///< of one launch
  /// Between the quartiles, relative to the median.
  double spread = 0;
  std::vector<double> rounds_ms;
};

/// Median and spread of at least one sample.
Timing timing_of(std::vector<double> samples_ms);

struct MeasureOptions {
  int rounds = 9;
  double graph_ms = 20;  ///< about as long as one graph of launches takes
  int most_launches = 100;
};

/// Times each work in every round, in turn, so that drift meets all alike.
/// Each sample is one replay of a graph of many launches, fewer when each is
/// long, divided by their number; the first replay is thrown away.
std::vector<Timing> measure(runtime::Device& device,
                            std::span<const Work> works,
                            const MeasureOptions& options = {});

}  // namespace logpjit::tuning
