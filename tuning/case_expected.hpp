// What a case of a case file expects.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuning/json_node.hpp"

namespace logpjit::tuning {

/// |x - right| <= absolute + relative * |right|; both 0 = exact.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
  /// NaN is near NaN, an infinity near itself.
  bool near(double x, double right) const;
};

struct Probe {
  std::int64_t row = 0;
  std::int64_t column = 0;
  double value = 0;
};

/// Rules beyond numbers.
enum class CasePolicy { kNone, kIgnoredId, kUndefinedRow };

/// The values of one output by name ("logp", "entropy", "kl_forward",
/// "kl_reverse", "lse", "topk_ids", "topk_logp", "logp_temperature_2", ...),
/// flattened, for the rows of `rows`; and gradients by name ("dlogits",
/// "dlogits_logp", ...), flattened over all rows.
struct CaseExpected {
  std::vector<std::int64_t> rows;  ///< empty: all
  std::map<std::string, std::vector<double>> values;
  std::map<std::string, std::vector<double>> gradients;
  std::map<std::int64_t, std::vector<double>> gradient_rows;
  std::vector<Probe> gradient_probes;
  std::vector<std::pair<std::int64_t, std::int64_t>> exact_zero;
  std::vector<std::int64_t> exact_zero_rows;
  std::optional<std::vector<std::int64_t>> gradient_shape;
  Tolerance tolerance;
  Tolerance gradient_tolerance;
  CasePolicy policy = CasePolicy::kNone;
  /// What else is right: "documented error", "a documented copy first", ...
  std::string also_acceptable;
  std::string behaviour;       ///< prose, tested elsewhere
  std::string memory;          ///< prose or JSON, tested elsewhere
  std::string bug_would_give;  ///< JSON, for the reader of a failure

  /// The row that entry `index` of per-row lists is for.
  std::int64_t row(std::int64_t index) const {
    return rows.empty() ? index : rows[static_cast<std::size_t>(index)];
  }
};

/// `shape` is [rows, columns], `ids_per_row` at least 1. Throws
/// Error{kInvalidArgument} with the JSON path.
CaseExpected read_case_expected(const JsonNode& node, std::int64_t rows,
                                std::int64_t columns, std::int64_t ids_per_row,
                                std::int64_t k);

}  // namespace logpjit::tuning
