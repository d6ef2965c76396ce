// Keys one after the other, the store, the budget.
#include "tuning/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "logpjit/error.hpp"
#include "runtime/config_rules.hpp"
#include "runtime/device_features.hpp"
#include "runtime/engine.hpp"
#include "tuning/key_tuner.hpp"

namespace logpjit::tuning {
namespace {

constexpr std::string_view kTemplates = "templates";
/// Of the time that the keys before took.
constexpr double kLeastShare = 0.9;
/// Of the budget.
constexpr double kMostForDefaults = 0.75;
constexpr std::string_view kStopped = "stopped by the user";

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

std::string identity(const runtime::Engine& engine) {
  try {
    return engine.compiler().identity();
  } catch (const Error&) {
    return "none";
  }
}

std::size_t measured_count(const KeyResult& key) {
  return static_cast<std::size_t>(std::ranges::count_if(
      key.candidates,
      [](const Candidate& candidate) { return candidate.timing.has_value(); }));
}

/// The default was built ahead.
void count_default(const DefaultBuilds::One& built, KeyResult& key) {
  Candidate& candidate = key.candidates.front();
  candidate.compile_ms += built.ms;
  candidate.cache_hit = built.cache_hit;
  if (key.winner == candidate.config) key.winner_cached = built.cache_hit;
}

}  // namespace

std::string_view name(CandidateStatus status) {
  switch (status) {
    case CandidateStatus::kMeasured:
      return "measured";
    case CandidateStatus::kSlow:
      return "slow";
    case CandidateStatus::kCompileFailed:
      return "compile_failed";
    case CandidateStatus::kSpills:
      return "spills";
    case CandidateStatus::kLoadFailed:
      return "load_failed";
    case CandidateStatus::kRunFailed:
      return "run_failed";
    case CandidateStatus::kWrongBits:
      return "wrong_bits";
    case CandidateStatus::kNotReached:
      return "not_reached";
  }
  return "";
}

std::string_view name(KeyStatus status) {
  switch (status) {
    case KeyStatus::kTuned:
      return "tuned";
    case KeyStatus::kStored:
      return "stored";
    case KeyStatus::kUnstable:
      return "unstable";
    case KeyStatus::kSkipped:
      return "skipped";
    case KeyStatus::kFailed:
      return "failed";
  }
  return "";
}

TuneOptions TuneOptions::for_device(const DeviceInfo& device) {
  TuneOptions options;
  const int processors =
      static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  options.compile_threads = std::min(processors, 16);
  if (device.id.kind == DeviceKind::kCuda) return options;
  options.first_candidates = 4;
  options.second_candidates = 2;
  options.measure = {.rounds = 3, .graph_ms = 0, .most_launches = 1};
  options.least_samples = 1;
  options.enough_ms = 1500;
  options.key_s = std::numeric_limits<double>::infinity();
  options.cached_key_s = options.key_s;
  // A machine's processors are seldom idle.
  options.select = {.tie_band = 0.05, .most_spread = 1e6};
  return options;
}

Tuner::Tuner(Runtime& runtime, cache::ConfigStore& store, TuneOptions options)
    : runtime_(runtime),
      store_(store),
      options_(std::move(options)),
      defaults_(runtime.engine()) {}

Tuner::~Tuner() = default;

const Floors& Tuner::floors() {
  if (!floors_) floors_ = std::make_unique<Floors>(runtime_.engine());
  return *floors_;
}

/// Before the budget is shared, since all keys need them. What is wrong with
/// them is said by the first key.
void Tuner::prepare_floors() {
  try {
    floors();
  } catch (const Error&) {
    floors_.reset();
  }
}

/// Whether the store has a winner for exactly this, made from these templates.
bool Tuner::take_stored(KeyResult& key) {
  runtime::Engine& engine = runtime_.engine();
  const auto features = runtime::device_features(runtime_.device());
  const std::string text = key.shape.text();
  for (const cache::ConfigRecord& record : store_.load()) {
    if (record.spec != text || record.device != features) continue;
    const auto read = runtime::read_records({&record, 1}, false);
    if (read.empty() ||
        runtime::broken_rule(key.shape.spec, read.front().config,
                             runtime_.device()) ||
        read.front().templates !=
            runtime::template_digest(key.shape.spec, read.front().config)) {
      return false;
    }
    const runtime::Built built = engine.build(
        key.shape.spec, read.front().config, engine.device().target());
    key.status = KeyStatus::kStored;
    key.winner = read.front().config;
    key.winner_ms = record.time_us / 1000;
    key.winner_spread = record.spread;
    key.winner_cached = built.origin != cache::Origin::kCompiled;
    return true;
  }
  return false;
}

void Tuner::store(KeyResult& key) {
  runtime::Engine& engine = runtime_.engine();
  const DeviceInfo& device = runtime_.device();
  const cache::ConfigRecord record{
      .spec = key.shape.text(),
      .device = runtime::device_features(device),
      .config = key.winner.text(),
      .time_us = key.winner_ms * 1000,
      .spread = key.winner_spread,
      .measured_with = {{std::string(kTemplates),
                         runtime::template_digest(key.shape.spec, key.winner)},
                        {"compiler", identity(engine)},
                        {"candidates", fmt::format("{}", measured_count(key))},
                        {"device", device.name},
                        {"software", device.software},
                        {"target", engine.device().target()}}};
  stored_ = store_.append({record}) && stored_;
}

bool Tuner::device_is_lost() {
  try {
    runtime_.engine().device().synchronize();
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// Side by side. A key without a default has nothing, so they may take most of
/// the budget.
void Tuner::build_defaults(const std::vector<runtime::TunedShape>& open) {
  const std::chrono::duration<double> most(kMostForDefaults *
                                           options_.budget_s);
  defaults_.build(open, options_.compile_threads,
                  begin_ + std::chrono::duration_cast<Clock::duration>(most),
                  options_.interrupted);
}

KeyResult Tuner::tune(const runtime::TunedShape& shape,
                      Clock::time_point deadline) {
  KeyResult key{.shape = shape};
  const auto built = defaults_.take(shape);
  if (built) key.times.compile = key.times.total = built->share_ms;
  try {
    KeyTuner(runtime_, {floors(), clock_.get()}, options_, key, deadline).run();
    if (built && !key.candidates.empty()) count_default(*built, key);
    if (key.status == KeyStatus::kTuned) store(key);
  } catch (const Error& error) {
    const bool is_skipped = error.code() == ErrorCode::kUnsupported ||
                            error.code() == ErrorCode::kTimeout;
    key.status = is_skipped ? KeyStatus::kSkipped : KeyStatus::kFailed;
    key.reason = error.message();
  }
  return key;
}

/// Why no further key is begun; empty when one may be. A key cannot be cut
/// shorter than its default, so none is begun too late.
std::string Tuner::why_stop(const runtime::TunedShape& shape,
                            double usual_s) const {
  if (options_.interrupted()) return "interrupted";
  const double left = options_.budget_s - seconds_since(begin_);
  const double build_s = defaults_.has(shape) ? 0 : defaults_.mean_ms() / 1000;
  return left > 0 && left > kLeastShare * usual_s + build_s
             ? std::string()
             : "the budget was spent";
}

void Tuner::tune_open(const std::vector<std::size_t>& open,
                      TuneResult& result) {
  const Clock::time_point first = Clock::now();
  int begun = 0;
  for (std::size_t i = 0; i < open.size(); ++i) {
    KeyResult& key = result.keys[open[i]];
    const double usual = begun == 0 ? 0 : seconds_since(first) / begun;
    key.reason = why_stop(key.shape, usual);
    if (options_.interrupted()) result.interrupted = kStopped;
    if (!result.interrupted.empty()) key.reason = "interrupted";
    if (!key.reason.empty()) continue;
    ++begun;
    options_.on_key(key.shape, i, open.size());
    // Another tuner may have been here since.
    if (!options_.force && take_stored(key)) continue;
    const std::chrono::duration<double> share(
        (options_.budget_s - seconds_since(begin_)) /
        static_cast<double>(open.size() - i));
    key =
        tune(key.shape,
             Clock::now() + std::chrono::duration_cast<Clock::duration>(share));
    if (key.status == KeyStatus::kSkipped && options_.interrupted()) {
      result.interrupted = kStopped;
    }
    if (key.status == KeyStatus::kFailed && device_is_lost()) {
      result.interrupted =
          fmt::format("{} was lost: {}", result.device.name, key.reason);
    }
  }
}

TuneResult Tuner::run(std::span<const runtime::TunedShape> shapes) {
  runtime::Engine& engine = runtime_.engine();
  if (engine.device().is_capturing(nullptr)) {
    throw Error(ErrorCode::kUnsupported,
                "tuning is impossible while a stream of the device is being "
                "captured; end the capture first");
  }
  begin_ = Clock::now();
  TuneResult result{.device = runtime_.device(),
                    .features = runtime::device_features(runtime_.device()),
                    .compiler = identity(engine),
                    .target = engine.device().target(),
                    .budget_s = options_.budget_s};
  std::vector<std::size_t> open;
  std::vector<runtime::TunedShape> open_shapes;
  for (const runtime::TunedShape& shape : shapes) {
    result.keys.push_back({.shape = shape});
    if (options_.force || !take_stored(result.keys.back())) {
      open.push_back(result.keys.size() - 1);
      open_shapes.push_back(shape);
    }
  }
  if (!open.empty()) {
    options_.on_defaults(open.size());
    clock_ = engine.device().make_clock_meter();
    prepare_floors();
    build_defaults(open_shapes);
  }
  tune_open(open, result);
  engine.compiler().give_up_at(Clock::time_point::max());
  result.seconds = seconds_since(begin_);
  result.stored = stored_;
  return result;
}

}  // namespace logpjit::tuning
