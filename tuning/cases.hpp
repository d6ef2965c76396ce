// Conformance cases: small inputs with right answers, read from a JSON file.
// The format is described in tests/conformance/README.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "logpjit/dtype.hpp"
#include "tuning/case_expected.hpp"
#include "tuning/case_pattern.hpp"
#include "tuning/reference.hpp"

namespace logpjit::tuning {

/// Where a tensor's elements lie in storage, in elements.
struct CaseLayout {
  std::int64_t storage_elements = 0;
  std::int64_t offset = 0;
  /// Elements outside the view are NaN: a result that is NaN has read one.
  bool poison_outside = false;
};

struct Case {
  std::string id;
  std::vector<std::string> source;
  std::string kind;
  std::string op;                  ///< as written, "logp+entropy+bwd"
  std::vector<std::string> parts;  ///< op, cut at '+'
  DType dtype = DType::kFp32;
  std::vector<std::int64_t> shape;    ///< [N, V] or [B, S, V]
  std::vector<std::int64_t> strides;  ///< one per dimension
  LogitsPattern logits;
  std::optional<LogitsPattern> teacher;
  std::optional<CaseLayout> layout;  ///< nothing: contiguous, no gaps
  bool has_ids = false;
  std::int64_t ids_per_row = 1;
  IdPattern ids;
  /// Upstream gradients by name: "grad_out", "grad_logp", "grad_entropy",
  /// "grad_kl".
  std::map<std::string, GradPattern> gradients;
  std::vector<double> temperature;     ///< none, one, or one per row
  std::vector<std::uint8_t> row_mask;  ///< 0 = ignored
  std::int64_t k = 0;                  ///< of topk
  std::vector<Range> shards;           ///< vocabulary ranges, one per rank
  std::vector<std::vector<Range>> other_shards;
  std::vector<DType> dtypes;     ///< run with each: the same bits
  std::vector<DType> id_dtypes;  ///< run with each: the same bits
  std::string procedure;         ///< prose: a test of its own
  double timeout_s = 0;          ///< 0: none
  double compile_s_max = 0;      ///< 0: none
  CaseExpected expected;

  std::int64_t rows() const;
  std::int64_t columns() const { return shape.back(); }
  /// Elements from the view's first to its last, inclusive; 0 when empty.
  std::int64_t extent() const;
  /// Elements of storage: the layout's, or the extent.
  std::int64_t storage_elements() const;
  bool asks(std::string_view part) const;
  bool wants_gradient() const;
  /// What the reference computes of it (the student's side of a KL).
  Problem problem() const;
  /// The teacher's side.
  Problem teacher_problem() const;
  /// Upstream gradients of logp and entropy, flattened; absent = empty.
  Upstream upstream() const;
};

/// Throws Error{kInvalidArgument} naming the case and the JSON path of what is
/// malformed, inconsistent, or not exact in its dtype.
std::vector<Case> parse_cases(std::string_view json);

/// The same from a file, named in every message; Error{kIo} when unreadable.
std::vector<Case> read_cases(const std::filesystem::path& file);

}  // namespace logpjit::tuning
