// What tuning found out: one struct for each level of the report.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/image.hpp"
#include "logpjit/device.hpp"
#include "runtime/config_lookup.hpp"
#include "tuning/accuracy.hpp"
#include "tuning/measure.hpp"
#include "tuning/selector.hpp"

namespace logpjit::tuning {

enum class CandidateStatus {
  kMeasured,
  kSlow,           ///< given up after its first samples
  kCompileFailed,  ///< `reason` says why, as for all that follow
  kSpills,         ///< compiled, with values in local memory
  kLoadFailed,
  kRunFailed,
  kWrongBits,   ///< its results are not the default's
  kNotReached,  ///< the budget was spent, or the goal reached, before
};
std::string_view name(CandidateStatus status);

/// One configuration that was tried.
struct Candidate {
  LaunchConfig config{};
  CandidateStatus status = CandidateStatus::kNotReached;
  std::string reason{};
  std::optional<Timing> timing{};
  cache::LaunchFacts facts{};
  bool is_built = false;
  bool cache_hit = false;
  double compile_ms = 0;  ///< to find or compile the image
};

enum class KeyStatus {
  kTuned,
  kStored,    ///< measured before; nothing was measured now
  kUnstable,  ///< measured, but too noisy to keep
  kSkipped,   ///< cannot be tuned here; or the budget was spent
  kFailed,
};
std::string_view name(KeyStatus status);

/// Where the time of one key went, milliseconds.
struct KeyTimes {
  double compile = 0;
  double verify = 0;
  double measure = 0;
  double total = 0;
};

/// One specification and row count.
struct KeyResult {
  runtime::TunedShape shape{};
  KeyStatus status = KeyStatus::kSkipped;
  /// Why skipped, failed or unstable; of a tuned key, what slowed the device
  /// down meanwhile, if anything did.
  std::string reason{};
  std::vector<Candidate> candidates{};  ///< the default first
  /// How many configurations which rule kept out.
  std::map<std::string, std::int64_t> rejected{};
  std::optional<Selection> selection{};  ///< among `candidates`
  LaunchConfig winner{};                 ///< empty unless tuned or stored
  double winner_ms = 0;
  double winner_spread = 0;
  bool winner_cached = false;  ///< its image was in a cache

  std::string passes{};
  std::int64_t bytes = 0;
  std::optional<Timing> floor{};  ///< plain kernels over the same bytes
  std::optional<Timing> copy{};   ///< the driver's copy of the logits
  std::int64_t copy_bytes = 0;
  std::optional<Accuracy> accuracy{};  ///< of the default, against float64
  KeyTimes times{};
};

/// A whole run.
struct TuneResult {
  DeviceInfo device{};
  std::map<std::string, std::string> features{};
  std::string compiler{};
  std::string target{};
  std::vector<KeyResult> keys{};
  double seconds = 0;
  double budget_s = 0;
  std::string interrupted{};  ///< why it ended early; empty when it did not
  bool stored = true;         ///< whether the config store took the winners
};

}  // namespace logpjit::tuning
