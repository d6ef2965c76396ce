// Measure and select: for one specification and row count.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "tuning/key_tuner.hpp"
#include "tuning/stopwatch.hpp"

namespace logpjit::tuning {
double KeyTuner::Samples::least() const {
  return ms.empty() ? std::numeric_limits<double>::infinity()
                    : *std::ranges::min_element(ms);
}

const KeyTuner::Loaded& KeyTuner::best() const {
  return *std::ranges::min_element(
      loaded_, {}, [](const Loaded& each) { return each.samples.least(); });
}

bool KeyTuner::reached_goal() const {
  return !floor_samples_.ms.empty() &&
         floor_samples_.least() >= options_.stop_at * best().samples.least();
}

void KeyTuner::sample(Loaded& loaded) {
  runtime::Device& device = runtime_.engine().device();
  if (loaded.work == nullptr) {
    const auto start = [this, kernel = loaded.kernel](CUstream_st* stream,
                                                      int turn) {
      subject_->use(kernel);
      subject_->start(stream, turn);
    };
    // The default says how many launches there are for all: then all are
    // measured alike, and nobody else needs a trial.
    const int launches =
        loaded_.front().work == nullptr ? 1 : loaded_.front().work->launches();
    loaded.work =
        launches > 1
            ? std::make_unique<TimedWork>(device, start, launches)
            : std::make_unique<TimedWork>(device, start, options_.measure);
    if (const auto first = loaded.work->calibration()) {
      loaded.samples.ms.push_back(*first);
      return;
    }
  }
  loaded.samples.ms.push_back(loaded.work->sample());
}

void KeyTuner::measure_floors() {
  runtime::Device& device = runtime_.engine().device();
  if (floor_samples_.ms.size() >=
      static_cast<std::size_t>(options_.measure.rounds)) {
    return;
  }
  if (floor_ == nullptr) {
    const std::int64_t shape[] = {key_.shape.rows, key_.shape.spec.vocab};
    // Whatever they hold.
    copy_from_ = upload(device, key_.shape.spec.logits, shape, {});
    copy_to_ = upload(device, key_.shape.spec.logits, shape, {});
    key_.copy_bytes = 2 * static_cast<std::int64_t>(copy_from_.bytes());
    floor_ = std::make_unique<TimedWork>(
        device,
        [this](CUstream_st* stream, int turn) {
          subject_->start_floor(floors_, stream, turn);
        },
        options_.measure);
    copy_ = std::make_unique<TimedWork>(
        device,
        [this, &device](CUstream_st* stream, int) {
          device.copy(copy_to_.view.data, copy_from_.view.data,
                      copy_from_.bytes(), stream);
        },
        options_.measure);
  }
  copy_samples_.ms.push_back(copy_->sample());
  warm_up(*floor_);
  floor_samples_.ms.push_back(floor_->sample());
}

/// A replay that does not count: whoever comes first after a copy or a pause
/// pays for it, 30 us of 0.54 ms on an H200.
void KeyTuner::warm_up(TimedWork& work) const {
  if (options_.measure.most_launches > 1) work.sample();
}

/// Times the best sample that a sample may take: the more there are, the less
/// is noise. Nobody is given up within a few bands of a tie.
double KeyTuner::give_up(std::size_t samples) const {
  constexpr double kBands = 3;
  return 1 + std::max(kBands * options_.select.tie_band,
                      (options_.give_up - 1) / static_cast<double>(samples));
}

/// One sample of a candidate, whose status says whether it can be run.
void KeyTuner::sample_candidate(Loaded& loaded) {
  Candidate& candidate = key_.candidates[loaded.candidate];
  try {
    sample(loaded);
    candidate.status = CandidateStatus::kMeasured;
  } catch (const Error& error) {
    if (loaded.candidate == 0) throw;
    candidate.status = CandidateStatus::kRunFailed;
    candidate.reason = first_line(error.message());
    runtime_.engine().device().synchronize();
  }
}

/// One sample of the floors and of all that are not given up. False when the
/// time was over before the last; the default has a sample whatever the time.
bool KeyTuner::sample_round() {
  measure_floors();
  if (loaded_.front().work != nullptr) warm_up(*loaded_.front().work);
  for (Loaded& loaded : loaded_) {
    const CandidateStatus status = key_.candidates[loaded.candidate].status;
    if (status == CandidateStatus::kSlow) continue;
    if (loaded.candidate != 0 && is_over(expected_ms_)) return false;
    sample_candidate(loaded);
  }
  std::erase_if(loaded_, [&](const Loaded& each) {
    return key_.candidates[each.candidate].status ==
           CandidateStatus::kRunFailed;
  });
  return true;
}

/// Keeps or drops the samples of the last round.
void KeyTuner::end_round(void (Samples::*end)()) {
  (floor_samples_.*end)();
  (copy_samples_.*end)();
  for (Loaded& loaded : loaded_) (loaded.samples.*end)();
}

void KeyTuner::give_up_slow() {
  const double best_ms = best().samples.least();
  for (const Loaded& loaded : loaded_) {
    Candidate& candidate = key_.candidates[loaded.candidate];
    const double times = loaded.samples.least() / best_ms;
    if (loaded.candidate == 0 || candidate.status == CandidateStatus::kSlow ||
        times <= give_up(loaded.samples.ms.size())) {
      continue;
    }
    candidate.status = CandidateStatus::kSlow;
    candidate.reason = fmt::format("{:.2f} times the best", times);
  }
}

/// Rounds over all that are verified and not given up, so that drift meets all
/// alike.
void KeyTuner::measure() {
  const Stopwatch watch(key_.times.measure);
  const Clock::time_point begin = Clock::now();
  for (int round = 0; round < options_.measure.rounds;) {
    if (round > 0 && is_over(expected_ms_)) return;
    const bool has_time =
        ms_since(begin) <= options_.enough_ms && seconds_left(is_cached()) > 0;
    if (!has_time &&
        static_cast<std::size_t>(round) >= options_.least_samples) {
      return;
    }
    const bool is_whole = sample_round();
    if (is_whole && watch_.spoils_round(has_time)) {
      end_round(&Samples::drop);
      continue;
    }
    end_round(&Samples::keep);
    if (!is_whole) return;
    give_up_slow();
    ++round;
  }
}

void KeyTuner::finish() {
  if (options_.interrupted()) {
    throw Error(ErrorCode::kUnsupported, "interrupted");
  }
  if (loaded_.front().samples.ms.size() < options_.least_samples) {
    throw Error(ErrorCode::kUnsupported,
                "the budget was spent before enough was measured");
  }
  for (const Loaded& loaded : loaded_) {
    Candidate& candidate = key_.candidates[loaded.candidate];
    if (!loaded.samples.ms.empty()) {
      candidate.timing = timing_of(loaded.samples.ms);
    } else if (candidate.status == CandidateStatus::kMeasured) {
      candidate.status = CandidateStatus::kNotReached;  // its round was dropped
    }
  }
  if (!floor_samples_.ms.empty()) {
    key_.floor = timing_of(floor_samples_.ms);
    key_.copy = timing_of(copy_samples_.ms);
  }
  // Preference: nearness to the default, so that ties end alike in every run.
  const LaunchConfig fallback = key_.candidates.front().config;
  std::vector<std::size_t> order(key_.candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const LaunchConfig& config = key_.candidates[i].config;
    return std::pair(distance(config, fallback), config.text());
  });
  std::vector<Timing> timings;
  for (const std::size_t i : order) {
    const Candidate& candidate = key_.candidates[i];
    const bool counts = candidate.status == CandidateStatus::kMeasured;
    timings.push_back(counts && candidate.timing ? *candidate.timing
                                                 : Timing{});
  }
  key_.selection = select(timings, options_.select);
  if (!key_.selection) {
    throw Error(ErrorCode::kInternal, "the default gave no usable time");
  }
  key_.selection->winner = order[key_.selection->winner];
  key_.selection->fastest = order[key_.selection->fastest];
  const Candidate& winner = key_.candidates[key_.selection->winner];
  key_.winner = winner.config;
  key_.winner_ms = winner.timing->median_ms;
  key_.winner_spread = winner.timing->spread;
  key_.winner_cached = winner.cache_hit;
  key_.status =
      key_.selection->stable ? KeyStatus::kTuned : KeyStatus::kUnstable;
  key_.reason = watch_.text();
  if (!key_.selection->stable) {
    key_.reason = fmt::format(
        "times spread by {:.0f} % (the default's by {:.0f} %): {}; nothing was "
        "stored",
        100 * winner.timing->spread,
        100 * key_.candidates.front().timing->spread,
        key_.reason.empty() ? "the device is shared or throttled"
                            : key_.reason);
  }
}

}  // namespace logpjit::tuning
