// The report: what tuning and timing found, as one JSON document.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuning/bench.hpp"
#include "tuning/tune_result.hpp"

namespace logpjit::tuning {

/// Plain data, as in the document; report.schema.json says what fields mean.
/// Times are in the unit that their names end with.
struct ReportTiming {
  double median_ms = 0;
  double spread = 0;
  std::vector<double> samples_ms{};
};

struct ReportCandidate {
  std::string config{};
  bool is_default = false;
  std::string status{};
  std::string reason{};
  std::optional<ReportTiming> timing{};
  double compile_ms = 0;
  bool cache_hit = false;
  std::optional<std::int64_t> registers{};
  std::optional<std::int64_t> spill_bytes{};
  std::optional<std::int64_t> stack_bytes{};
};

struct ReportAccuracy {
  std::int64_t values = 0;
  std::int64_t misplaced = 0;
  double max_absolute_error = 0;
  double max_ulp = 0;
  double correctly_rounded = 0;
};

/// What somebody else's program took for the same.
struct ReportPeer {
  std::string name{};
  std::optional<double> ms{};
  std::optional<double> peak_gib{};
  std::string error{};
};

struct ReportTimes {
  double compile_ms = 0;
  double verify_ms = 0;
  double measure_ms = 0;
  double total_ms = 0;
};

/// One specification and row count.
struct ReportEntry {
  std::string op{};
  std::string dtype{};
  std::int64_t vocab = 0;
  std::int64_t rows = 0;
  std::string spec{};
  std::string status{};  ///< as KeyStatus; "timed" in a bench report
  std::string reason{};
  std::string passes{};
  std::int64_t bytes = 0;
  std::int64_t workspace_bytes = 0;
  std::string config{};         ///< the winner; what was timed
  std::string config_source{};  ///< as ConfigSource
  std::string verdict{};        ///< as Verdict
  bool image_cached = false;
  std::optional<ReportTiming> operation{};  ///< with `config`
  std::optional<ReportTiming> floor{};
  std::optional<ReportTiming> copy{};
  std::int64_t copy_bytes = 0;
  std::int64_t ids_per_row = 1;
  bool half_ignored = false;  ///< every second row has no id
  /// Rows were logits[:, :-1] of so many sequences; 0: a plain matrix.
  std::int64_t sequences = 0;
  bool fallback = false;
  /// The plain call: one id a row, none ignored, specialised kernels.
  std::optional<ReportTiming> baseline{};
  std::optional<ReportAccuracy> accuracy{};
  std::vector<ReportCandidate> candidates{};
  std::map<std::string, std::int64_t> rejected{};
  ReportTimes times{};
  std::vector<ReportPeer> peers{};

  // Nothing where a time is missing.
  std::optional<double> to_floor() const;  ///< operation over floor
  std::optional<double> gb_per_s() const;  ///< of the operation
  /// How much faster than the default: 0.1 = by a tenth.
  std::optional<double> gain() const;
};

/// "612.3 µs", "1.634 ms", "47.90 ms"; `micro` for where µ is not wanted.
std::string time_text(double ms, std::string_view micro = "µs");

/// 0 where there is no time.
double gb_per_s(std::int64_t bytes, double ms);

/// Its candidates by time, those without one last.
std::vector<const ReportCandidate*> fastest_first(const ReportEntry& entry);

struct ReportDevice {
  std::string name{};
  std::string software{};
  std::string target{};
  std::map<std::string, std::string> features{};
};

struct Report {
  static constexpr std::int64_t kVersion = 1;

  std::int64_t version = kVersion;
  std::string kind{};  ///< "pretune" or "bench"
  std::string logpjit{};
  std::string created{};  ///< UTC, 2026-01-31T12:00:00Z
  ReportDevice device{};
  std::string compiler{};
  double seconds = 0;
  std::optional<double> budget_s{};
  std::string interrupted{};
  std::vector<ReportEntry> entries{};
};

/// What a peer of an entry is to be measured against.
struct PeerMeasure {
  double ms = 0;
  std::string what{};
};
/// The operation; of kl_backward, whose peers compute the values too, with that
/// of kl. Nothing where a time is missing.
std::optional<PeerMeasure> peer_measure(const Report& report,
                                        const ReportEntry& entry);

/// The document, indented, with a line break at the end.
std::string to_json(const Report& report);

/// Error{kInvalidArgument} naming the file and what is wrong with it: no JSON
/// or cut short, no report, of a later version, a field that is missing or of
/// another type. Fields that are not known are passed over.
Report parse_report(std::string_view text, std::string_view file);

/// What a run of the tuner found.
Report make_report(const TuneResult& result, std::string_view version);
/// An empty report on a device.
Report make_report(std::string_view kind, runtime::Engine& engine,
                   std::string_view version);
ReportEntry make_entry(const KeyResult& key);
ReportEntry make_entry(const BenchRequest& request, const BenchResult& result);

/// Adds to `entry` the results of peers in JSON as scripts write it:
/// {"rows", "vocab", "dtype", "results": {name: {"ms", "peak_gib"} or
/// {"error"}}}. Names that begin with another operation than the entry's, and
/// documents of another shape or dtype, are passed over. Error as parse_report.
void add_peers(std::vector<ReportEntry>& entries, std::string_view text,
               std::string_view file);

}  // namespace logpjit::tuning
