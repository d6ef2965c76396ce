// Build, verify, measure, select: for one specification and row count.
#include "tuning/key_tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <utility>

#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "tuning/parallel.hpp"

namespace logpjit::tuning {
namespace {

using Clock = std::chrono::steady_clock;

/// Without being measured: a candidate whose first run takes this many times
/// the quickest is given up, if it took long enough to be told.
constexpr double kHopeless = 2;
constexpr double kLongMs = 1;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin)
      .count();
}

/// Adds the time of a scope.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  ~Stopwatch() { sum_ += ms_since(begin_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_;
  const Clock::time_point begin_ = Clock::now();
};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// Values that are plainly wrong, not merely rounded elsewhere.
bool is_accurate(const Accuracy& accuracy, const KernelSpec& spec) {
  const bool fp32 = spec.pass == Pass::kForward || spec.logits == DType::kFp32;
  if (accuracy.misplaced() > 0) return false;
  if (fp32) {
    return accuracy.max_absolute() <= 2e-5 || accuracy.max_relative() <= 2e-5;
  }
  return accuracy.max_ulp() <= 1.01 || accuracy.max_absolute() <= 1e-6;
}

double least(const std::vector<double>& samples) {
  return samples.empty() ? std::numeric_limits<double>::infinity()
                         : *std::min_element(samples.begin(), samples.end());
}

}  // namespace

KeyTuner::KeyTuner(Runtime& runtime, const Floors& floors,
                   const TuneOptions& options, KeyResult& key,
                   Clock::time_point deadline)
    : runtime_(runtime),
      floors_(floors),
      options_(options),
      key_(key),
      deadline_(deadline) {}

bool KeyTuner::is_over(double ms) const {
  const std::chrono::duration<double, std::milli> more(ms);
  return Clock::now() + more >= deadline_ || options_.interrupted();
}

void KeyTuner::run() {
  const Stopwatch watch(key_.times.total);
  const runtime::TunedShape& shape = key_.shape;
  SearchSpace space = search_space(shape, runtime_.device());
  key_.rejected = std::move(space.rejected);
  subject_ = make_tunable_subject(runtime_, shape.spec, shape.rows);
  if (subject_->spec() != shape.spec) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("no tensors are made for '{}'; the nearest is '{}'",
                            shape.spec.text(), subject_->spec().text()));
  }
  add(spread_out(space.configs, options_.first_candidates));
  measure();
  if (!is_over() && !reached_goal()) add_neighbours(space.configs);
  finish();
}

/// The second stage, around the best of the first.
void KeyTuner::add_neighbours(std::span<const LaunchConfig> configs) {
  std::vector<LaunchConfig> known;
  known.reserve(key_.candidates.size());
  for (const Candidate& each : key_.candidates) known.push_back(each.config);
  const auto best = std::ranges::min_element(
      loaded_, {}, [](const Loaded& each) { return least(each.samples); });
  auto near = neighbours(configs, key_.candidates[best->candidate].config,
                         known, options_.second_candidates);
  if (near.empty()) return;
  add(std::move(near));
  measure();
}

/// Builds and verifies new candidates.
void KeyTuner::add(std::vector<LaunchConfig> configs) {
  const std::size_t first = key_.candidates.size();
  for (LaunchConfig& config : configs) {
    key_.candidates.push_back({.config = std::move(config)});
  }
  build(first);
  verify(first);
}

void KeyTuner::build(std::size_t first) {
  const Stopwatch watch(key_.times.compile);
  const Clock::time_point begin = Clock::now();
  const auto end = begin + (deadline_ - begin) * 6 / 10;
  std::atomic<bool> begun = false;
  parallel_for(
      key_.candidates.size() - first, options_.compile_threads,
      [&](std::size_t i) { build_one(key_.candidates[first + i]); },
      [&] {
        // The default is always built.
        const bool is_first = first == 0 && !begun.exchange(true);
        const std::chrono::duration<double, std::milli> more(
            longest_build_ms_.load());
        return !is_first && (Clock::now() + more >= end || is_over());
      });
}

void KeyTuner::build_one(Candidate& candidate) {
  runtime::Engine& engine = runtime_.engine();
  const Clock::time_point begin = Clock::now();
  try {
    const runtime::Built built = engine.build(key_.shape.spec, candidate.config,
                                              engine.device().target());
    candidate.facts = built.image->facts;
    candidate.cache_hit = built.origin != cache::Origin::kCompiled;
    candidate.is_built = true;
  } catch (const Error& error) {
    candidate.status = CandidateStatus::kCompileFailed;
    candidate.reason = first_line(error.message());
  }
  candidate.compile_ms = ms_since(begin);
  if (candidate.compile_ms > longest_build_ms_.load()) {
    longest_build_ms_.store(candidate.compile_ms);
  }
  const bool is_default = &candidate == &key_.candidates.front();
  if (is_default || !candidate.is_built) return;
  if (candidate.facts.spill_bytes > 0 || candidate.facts.stack_bytes > 0) {
    candidate.status = CandidateStatus::kSpills;
    candidate.reason =
        fmt::format("{} bytes spilled, {} of stack",
                    candidate.facts.spill_bytes, candidate.facts.stack_bytes);
  }
}

/// One run on the first buffers, until the device is done.
double KeyTuner::run_ms() {
  runtime::Device& device = runtime_.engine().device();
  device.synchronize();
  const Clock::time_point begin = Clock::now();
  subject_->start(nullptr, 0);
  device.synchronize();
  return ms_since(begin);
}

void KeyTuner::check_default() {
  Candidate& candidate = key_.candidates.front();
  if (!candidate.is_built) {
    throw Error(ErrorCode::kCompileFailed, candidate.reason);
  }
  Kernel kernel = runtime_.kernel(key_.shape.spec, candidate.config);
  subject_->use(kernel);
  quickest_ms_ = run_ms();
  subject_->poison();
  const Clock::time_point begin = Clock::now();
  key_.accuracy = subject_->check();
  expected_ms_ = ms_since(begin);
  if (!is_accurate(*key_.accuracy, key_.shape.spec)) {
    throw Error(
        ErrorCode::kInternal,
        fmt::format("the default's results are wrong: {} values misplaced, "
                    "error up to {:.2e} against float64",
                    key_.accuracy->misplaced(), key_.accuracy->max_absolute()));
  }
  expected_ = subject_->results();
  key_.passes = subject_->passes();
  key_.bytes = subject_->bytes();
  loaded_.push_back({.candidate = 0, .kernel = kernel});
}

void KeyTuner::verify(std::size_t first) {
  const Stopwatch watch(key_.times.verify);
  if (first == 0) check_default();
  for (std::size_t i = std::max<std::size_t>(first, 1);
       i < key_.candidates.size() && !is_over(2 * expected_ms_); ++i) {
    Candidate& candidate = key_.candidates[i];
    const bool usable =
        candidate.is_built && candidate.status == CandidateStatus::kNotReached;
    Kernel kernel;
    if (usable && verify_one(candidate, kernel)) {
      loaded_.push_back({.candidate = i, .kernel = kernel});
    }
  }
}

bool KeyTuner::verify_one(Candidate& candidate, Kernel& kernel) {
  runtime::Device& device = runtime_.engine().device();
  candidate.status = CandidateStatus::kLoadFailed;
  try {
    kernel = runtime_.kernel(key_.shape.spec, candidate.config);
    candidate.status = CandidateStatus::kRunFailed;
    subject_->use(kernel);
    subject_->poison();
    const double ms = run_ms();
    if (subject_->results() != expected_) {
      candidate.status = CandidateStatus::kWrongBits;
      candidate.reason = "its results differ from the default's";
      return false;
    }
    candidate.status = CandidateStatus::kNotReached;
    quickest_ms_ = std::min(quickest_ms_, ms);
    if (ms < kLongMs || ms < kHopeless * quickest_ms_) return true;
    candidate.status = CandidateStatus::kSlow;
    candidate.reason = fmt::format(
        "its first run took {:.3g} ms, the quickest {:.3g}", ms, quickest_ms_);
  } catch (const Error& error) {
    candidate.reason = first_line(error.message());
    device.synchronize();  // throws when more than the candidate is broken
  }
  return false;
}

double KeyTuner::best_ms() const {
  double best = std::numeric_limits<double>::infinity();
  for (const Loaded& each : loaded_) {
    best = std::min(best, least(each.samples));
  }
  return best;
}

bool KeyTuner::reached_goal() const {
  return !floor_samples_.empty() &&
         least(floor_samples_) >= options_.stop_at * best_ms();
}

void KeyTuner::sample(Loaded& loaded) {
  runtime::Device& device = runtime_.engine().device();
  if (loaded.work == nullptr) {
    const auto start = [this, kernel = loaded.kernel](CUstream_st* stream,
                                                      int turn) {
      subject_->use(kernel);
      subject_->start(stream, turn);
    };
    loaded.work = std::make_unique<TimedWork>(device, start, options_.measure);
    if (const auto first = loaded.work->calibration()) {
      loaded.samples.push_back(*first);
      return;
    }
  }
  loaded.samples.push_back(loaded.work->sample());
}

void KeyTuner::measure_floors(int rounds) {
  runtime::Device& device = runtime_.engine().device();
  if (floor_ == nullptr) {
    const std::int64_t shape[] = {key_.shape.rows, key_.shape.spec.vocab};
    copy_from_ = poisoned_tensor(device, key_.shape.spec.logits, shape);
    copy_to_ = poisoned_tensor(device, key_.shape.spec.logits, shape);
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
  for (int i = 0; i < rounds; ++i) {
    floor_samples_.push_back(floor_->sample());
    copy_samples_.push_back(copy_->sample());
  }
}

/// Rounds over all that are verified and not given up, so that drift meets all
/// alike. The default has at least one sample whatever the time.
void KeyTuner::measure() {
  const Stopwatch watch(key_.times.measure);
  const Clock::time_point begin = Clock::now();
  for (int round = 0; round < options_.measure.rounds; ++round) {
    if (round > 0 && is_over(expected_ms_)) return;
    if (static_cast<std::size_t>(round) >= options_.least_samples &&
        ms_since(begin) > options_.enough_ms) {
      return;
    }
    measure_floors(1);
    for (Loaded& loaded : loaded_) {
      Candidate& candidate = key_.candidates[loaded.candidate];
      if (candidate.status == CandidateStatus::kSlow) continue;
      if (loaded.candidate != 0 && is_over(expected_ms_)) return;
      try {
        sample(loaded);
      } catch (const Error& error) {
        if (loaded.candidate == 0) throw;
        candidate.status = CandidateStatus::kRunFailed;
        candidate.reason = first_line(error.message());
        loaded.samples.clear();
        runtime_.engine().device().synchronize();
        continue;
      }
      candidate.status = CandidateStatus::kMeasured;
      const double best = best_ms();
      if (loaded.candidate != 0 &&
          least(loaded.samples) > options_.give_up * best) {
        candidate.status = CandidateStatus::kSlow;
        candidate.reason =
            fmt::format("{:.2f} times the best", least(loaded.samples) / best);
      }
    }
    std::erase_if(loaded_, [&](const Loaded& each) {
      return key_.candidates[each.candidate].status ==
             CandidateStatus::kRunFailed;
    });
  }
}

void KeyTuner::finish() {
  if (options_.interrupted()) {
    throw Error(ErrorCode::kUnsupported, "interrupted");
  }
  if (loaded_.front().samples.size() < options_.least_samples) {
    throw Error(ErrorCode::kUnsupported,
                "the budget was spent before enough was measured");
  }
  for (const Loaded& loaded : loaded_) {
    if (loaded.samples.empty()) continue;
    key_.candidates[loaded.candidate].timing = timing_of(loaded.samples);
  }
  if (!floor_samples_.empty()) {
    key_.floor = timing_of(floor_samples_);
    key_.copy = timing_of(copy_samples_);
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
  if (!key_.selection->stable) {
    key_.reason = fmt::format(
        "times spread by {:.0f} % (the default's by {:.0f} %): the device is "
        "shared or throttled; nothing was stored",
        100 * winner.timing->spread,
        100 * key_.candidates.front().timing->spread);
  }
}

}  // namespace logpjit::tuning
