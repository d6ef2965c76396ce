// Honest times of device work: interleaved, repeated, many launches at once.
#include "tuning/measure.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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
  timing.low_ms = quantile(samples_ms, 0.25);
  timing.high_ms = quantile(samples_ms, 0.75);
  const double between = timing.high_ms - timing.low_ms;
  timing.spread = timing.median_ms > 0 ? between / timing.median_ms : 0;
  return timing;
}

TimedWork::TimedWork(runtime::Device& device, Work work,
                     const MeasureOptions& options)
    : work_(std::make_shared<const Work>(std::move(work))),
      turn_(std::make_shared<int>(0)) {
  record(device, 1);
  // Where single launches are timed they are long, and the caller ran one.
  if (options.most_launches > 1) graph_->replay_ms();
  const double ms = graph_->replay_ms();
  const int launches = launches_for(ms, options);
  if (launches == 1) {
    calibration_ = ms;
    return;
  }
  record(device, launches);
  graph_->replay_ms();
}

TimedWork::TimedWork(runtime::Device& device, Work work, int launches)
    : work_(std::make_shared<const Work>(std::move(work))),
      turn_(std::make_shared<int>(0)) {
  record(device, launches);
  graph_->replay_ms();
}

void TimedWork::record(runtime::Device& device, int launches) {
  launches_ = launches;
  graph_ = device.capture(
      [work = work_, turn = turn_, launches](CUstream_st* stream) {
        for (int i = 0; i < launches; ++i) (*work)(stream, (*turn)++);
      });
}

std::vector<Timing> measure(runtime::Device& device,
                            std::span<const Work> works,
                            const MeasureOptions& options,
                            ThrottleWatch& watch) {
  std::vector<TimedWork> timed;
  timed.reserve(works.size());
  for (const Work& work : works) timed.emplace_back(device, work, options);
  std::vector<std::vector<double>> samples(works.size());
  for (int round = 0; round < options.rounds;) {
    for (std::size_t w = 0; w < works.size(); ++w) {
      samples[w].push_back(timed[w].sample());
    }
    if (!watch.spoils_round(true)) {
      ++round;
      continue;
    }
    for (std::vector<double>& each : samples) each.pop_back();
  }
  std::vector<Timing> timings;
  timings.reserve(works.size());
  for (auto& each : samples) timings.push_back(timing_of(std::move(each)));
  return timings;
}

}  // namespace logpjit::tuning
