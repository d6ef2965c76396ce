// What changed between two reports, beyond noise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuning/report.hpp"

namespace logpjit::tuning {

enum class Change {
  kFaster,
  kSlower,
  kSame,     ///< within the band, or spreads that overlap
  kOnlyOld,  ///< not in the new report, or without a time there
  kOnlyNew,
};
std::string_view name(Change change);

/// One specification and row count in both.
struct EntryDiff {
  std::string op{};
  std::string dtype{};
  std::int64_t vocab = 0;
  std::int64_t rows = 0;
  Change change = Change::kSame;
  std::optional<double> old_ms{};
  std::optional<double> new_ms{};
  std::string old_config{};
  std::string new_config{};
};

/// In the old report's order, then what only the new one has.
std::vector<EntryDiff> diff(const Report& before, const Report& after,
                            double band = 0.02);

}  // namespace logpjit::tuning
