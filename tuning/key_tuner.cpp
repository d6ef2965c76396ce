// Build and verify: for one specification and row count.
#include "tuning/key_tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "runtime/parallel.hpp"
#include "tuning/stopwatch.hpp"

namespace logpjit::tuning {
namespace {

/// Without being measured: a candidate whose first run takes this many times
/// the quickest is given up, if it took long enough to be told.
constexpr double kHopeless = 2;
constexpr double kLongMs = 1;

/// Values that are plainly wrong, not merely rounded elsewhere.
bool is_accurate(const Accuracy& accuracy, const KernelSpec& spec) {
  const bool fp32 = spec.pass == Pass::kForward || spec.logits == DType::kFp32;
  if (accuracy.misplaced() > 0) return false;
  if (fp32) {
    return accuracy.max_absolute() <= 2e-5 || accuracy.max_relative() <= 2e-5;
  }
  return accuracy.max_ulp() <= 1.01 || accuracy.max_absolute() <= 1e-6;
}

}  // namespace

KeyTuner::KeyTuner(Runtime& runtime, Beside beside, const TuneOptions& options,
                   KeyResult& key, Clock::time_point deadline)
    : runtime_(runtime),
      floors_(beside.floors),
      watch_(beside.clock, options.measure.rounds),
      options_(options),
      key_(key),
      begin_(Clock::now() -
             std::chrono::duration_cast<Clock::duration>(
                 std::chrono::duration<double, std::milli>(key.times.total))),
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
  // A gradient's tensors come from a forward, which may have to be compiled.
  runtime_.engine().compiler().give_up_at(deadline_);
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
  auto near = neighbours(configs, key_.candidates[best().candidate].config,
                         known, options_.second_candidates);
  near.resize(affordable(near));
  if (near.empty()) return;
  add(std::move(near));
  measure();
}

bool KeyTuner::is_cached() const {
  return std::ranges::all_of(key_.candidates, [](const Candidate& each) {
    return each.cache_hit || !each.is_built;
  });
}

bool KeyTuner::has_image(const LaunchConfig& config) const {
  runtime::Engine& engine = runtime_.engine();
  return engine.images()
      .find(engine.key(key_.shape.spec, config, engine.device().target()))
      .has_value();
}

double KeyTuner::seconds_left(bool is_cached) const {
  const std::chrono::duration<double> used = Clock::now() - begin_;
  const double all = is_cached ? options_.cached_key_s : options_.key_s;
  return std::max(0.0, all - used.count());
}

/// As many of these, in order, as the key has time for by what those before
/// took.
std::size_t KeyTuner::affordable(std::span<const LaunchConfig> near) const {
  const auto count = static_cast<double>(key_.candidates.size());
  const double run_s = (key_.times.verify + key_.times.measure) / 1000 / count;
  const double build_s =
      std::max(key_.times.compile / count,
               longest_build_ms_ / options_.compile_threads) /
      1000;
  std::vector<bool> is_here;
  for (const LaunchConfig& config : near) is_here.push_back(has_image(config));
  const bool all_here =
      is_cached() && std::ranges::find(is_here, false) == is_here.end();
  double left = seconds_left(all_here);
  // The last build ends as long after the others as a build takes.
  if (!all_here) left -= longest_build_ms_ / 1000;
  std::size_t taken = 0;
  for (const bool here : is_here) {
    left -= here ? run_s : run_s + build_s;
    if (left < 0) break;
    ++taken;
  }
  return taken;
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
  if (first == 0) expect_build_time();
  const bool has_default = first > 0 || longest_build_ms_ > 0;
  runtime::Compiler& compiler = runtime_.engine().compiler();
  compiler.give_up_at(has_default ? end : deadline_);
  runtime::parallel_for(key_.candidates.size() - first,
                        options_.compile_threads, [&](std::size_t i) {
                          Candidate& candidate = key_.candidates[first + i];
                          if (may_build(candidate, end)) build_one(candidate);
                        });
  compiler.give_up_at(deadline_);
}

/// Of a default that was built ahead: what it took.
void KeyTuner::expect_build_time() {
  runtime::Engine& engine = runtime_.engine();
  const auto found = engine.images().find(
      engine.key(key_.shape.spec, key_.candidates.front().config,
                 engine.device().target()));
  if (found) longest_build_ms_ = found->image->compile_ms;
}

/// The default always; another unless it would end too late.
bool KeyTuner::may_build(const Candidate& candidate, Clock::time_point end) {
  if (&candidate == &key_.candidates.front()) return true;
  if (is_over() || Clock::now() >= end) return false;
  const std::chrono::duration<double, std::milli> usual(
      longest_build_ms_.load());
  return Clock::now() + usual < end || has_image(candidate.config);
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
    if (error.code() != ErrorCode::kTimeout) {
      candidate.status = CandidateStatus::kCompileFailed;
    }
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
    const bool is_late = candidate.status == CandidateStatus::kNotReached;
    throw Error(is_late ? ErrorCode::kUnsupported : ErrorCode::kCompileFailed,
                is_late ? "the budget was spent: " + candidate.reason
                        : candidate.reason);
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
    subject_->poison_results();
    const double ms = run_ms();
    if (!std::ranges::equal(subject_->fetch_results(), expected_)) {
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

}  // namespace logpjit::tuning
