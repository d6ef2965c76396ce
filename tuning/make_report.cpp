// From what was measured to the report's plain data.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "logpjit/error.hpp"
#include "runtime/device_features.hpp"
#include "runtime/engine.hpp"
#include "tuning/report.hpp"

namespace logpjit::tuning {
namespace {

std::string now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

ReportTiming report(const Timing& timing) {
  return {.median_ms = timing.median_ms,
          .spread = timing.spread,
          .samples_ms = timing.rounds_ms};
}

std::optional<ReportTiming> report(const std::optional<Timing>& timing) {
  return timing ? std::optional(report(*timing)) : std::nullopt;
}

ReportAccuracy report(const Accuracy& accuracy) {
  return {.values = accuracy.count(),
          .misplaced = accuracy.misplaced(),
          .max_absolute_error = accuracy.max_absolute(),
          .max_ulp = accuracy.max_ulp(),
          .correctly_rounded = accuracy.correctly_rounded()};
}

std::optional<std::int64_t> known(std::int32_t value) {
  return value < 0 ? std::nullopt : std::optional<std::int64_t>(value);
}

ReportCandidate report(const Candidate& candidate, bool is_default) {
  return {.config = candidate.config.text(),
          .is_default = is_default,
          .status = std::string(name(candidate.status)),
          .reason = candidate.reason,
          .timing = report(candidate.timing),
          .compile_ms = candidate.compile_ms,
          .cache_hit = candidate.cache_hit,
          .registers = known(candidate.facts.registers),
          .spill_bytes = known(candidate.facts.spill_bytes),
          .stack_bytes = known(candidate.facts.stack_bytes)};
}

ReportEntry entry_of(const KernelSpec& spec, std::int64_t rows) {
  return {.op = spec.op(),
          .dtype = std::string(name(spec.logits)),
          .vocab = spec.vocab,
          .rows = rows,
          .spec = spec.text()};
}

/// Where a call with these rows gets its configuration from after the run.
std::string source_of(const KeyResult& key) {
  const bool is_stored =
      key.status == KeyStatus::kTuned || key.status == KeyStatus::kStored;
  return std::string(
      name(is_stored ? ConfigSource::kExact : ConfigSource::kDefault));
}

}  // namespace

ReportEntry make_entry(const KeyResult& key) {
  ReportEntry entry = entry_of(key.shape.spec, key.shape.rows);
  entry.status = name(key.status);
  entry.reason = key.reason;
  entry.passes = key.passes;
  entry.bytes = key.bytes;
  entry.config = key.winner.text();
  entry.config_source = source_of(key);
  entry.image_cached = key.winner_cached;
  entry.floor = report(key.floor);
  entry.copy = report(key.copy);
  entry.copy_bytes = key.copy_bytes;
  entry.rejected = key.rejected;
  entry.times = {.compile_ms = key.times.compile,
                 .verify_ms = key.times.verify,
                 .measure_ms = key.times.measure,
                 .total_ms = key.times.total};
  if (key.accuracy) entry.accuracy = report(*key.accuracy);
  for (std::size_t i = 0; i < key.candidates.size(); ++i) {
    entry.candidates.push_back(report(key.candidates[i], i == 0));
  }
  if (key.selection) {
    entry.verdict = name(key.selection->verdict);
    entry.operation = report(key.candidates[key.selection->winner].timing);
  } else if (key.status == KeyStatus::kStored) {
    entry.operation =
        ReportTiming{.median_ms = key.winner_ms, .spread = key.winner_spread};
  }
  return entry;
}

ReportEntry make_entry(const BenchRequest& request, const BenchResult& result) {
  ReportEntry entry = entry_of(request.spec, request.rows);
  entry.status = "timed";
  entry.reason = result.throttling;
  entry.passes = result.passes;
  entry.bytes = result.bytes;
  entry.workspace_bytes = result.peak_workspace;
  entry.config = result.config;
  entry.config_source = name(result.config_source);
  entry.image_cached = result.image_cached;
  entry.operation = report(result.operation);
  entry.floor = report(result.floor);
  entry.copy = report(result.copy);
  entry.copy_bytes = result.copy_bytes;
  entry.ids_per_row = request.variant.ids_per_row;
  entry.half_ignored = request.variant.half_ignored;
  entry.sequences = request.variant.sequences;
  entry.fallback = request.variant.fallback;
  entry.baseline = report(result.baseline);
  entry.accuracy = report(result.accuracy);
  entry.times.compile_ms = result.prepare_ms;
  return entry;
}

Report make_report(std::string_view kind, runtime::Engine& engine,
                   std::string_view version) {
  const DeviceInfo& device = engine.device().info();
  Report report{.kind = std::string(kind),
                .logpjit = std::string(version),
                .created = now(),
                .device = {.name = device.name,
                           .software = device.software,
                           .target = engine.device().target(),
                           .features = runtime::device_features(device)}};
  try {
    report.compiler = engine.compiler().identity();
  } catch (const Error&) {
    report.compiler = "none";
  }
  return report;
}

Report make_report(const TuneResult& result, std::string_view version) {
  Report report{.kind = "pretune",
                .logpjit = std::string(version),
                .created = now(),
                .device = {.name = result.device.name,
                           .software = result.device.software,
                           .target = result.target,
                           .features = result.features},
                .compiler = result.compiler,
                .seconds = result.seconds,
                .budget_s = result.budget_s,
                .interrupted = result.interrupted};
  for (const KeyResult& key : result.keys) {
    report.entries.push_back(make_entry(key));
  }
  return report;
}

}  // namespace logpjit::tuning
