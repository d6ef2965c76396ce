// Honest times of device work: interleaved, repeated, many launches at once.
#include "tuning/measure.hpp"

#include <algorithm>
#include <cmath>

namespace logpjit::tuning {
namespace {

/// The value at `fraction` of the sorted samples, interpolated.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(low);
  return sorted[low] + part * (sorted[high] - sorted[low]);
}

double sample(runtime::Device& device, const Work& work, int launches,
              int& turn) {
  const auto start = [&](CUstream_st* stream) {
    for (int i = 0; i < launches; ++i) work(stream, turn++);
  };
  return device.time_graph(start, 1).front() / launches;
}

int launches_for(double ms, const MeasureOptions& options) {
  if (!(ms > 0)) return options.most_launches;
  const double wanted = std::ceil(options.graph_ms / ms);
  return static_cast<int>(
      std::clamp(wanted, 1.0, static_cast<double>(options.most_launches)));
}

}  // namespace

Timing timing_of(std::vector<double> samples_ms) {
  Timing timing;
  timing.rounds_ms = samples_ms;
  std::sort(samples_ms.begin(), samples_ms.end());
  timing.median_ms = quantile(samples_ms, 0.5);
  const double between =
      quantile(samples_ms, 0.75) - quantile(samples_ms, 0.25);
  timing.spread = timing.median_ms > 0 ? between / timing.median_ms : 0;
  return timing;
}

std::vector<Timing> measure(runtime::Device& device,
                            std::span<const Work> works,
                            const MeasureOptions& options) {
  std::vector<int> launches;
  launches.reserve(works.size());
  std::vector<int> turns(works.size(), 0);
  for (std::size_t w = 0; w < works.size(); ++w) {
    launches.push_back(
        launches_for(sample(device, works[w], 1, turns[w]), options));
  }
  std::vector<std::vector<double>> samples(works.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t w = 0; w < works.size(); ++w) {
      samples[w].push_back(sample(device, works[w], launches[w], turns[w]));
    }
  }
  std::vector<Timing> timings;
  timings.reserve(works.size());
  for (auto& each : samples) timings.push_back(timing_of(std::move(each)));
  return timings;
}

}  // namespace logpjit::tuning
