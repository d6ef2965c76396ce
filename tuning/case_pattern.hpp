// The number patterns of a case file: logits, ids and upstream gradients.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tuning/json_node.hpp"

namespace logpjit::tuning {

/// A half-open range of rows or columns.
struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool contains(std::int64_t i) const { return low <= i && i < high; }
  bool operator==(const Range&) const = default;
};

/// Logits by (flattened) row and column: literal rows; one constant; or
///   ((row a + column b + c) mod m) / div - sub;
/// then `set` entries in order.
class LogitsPattern {
 public:
  LogitsPattern() = default;
  /// Throws Error{kInvalidArgument} with the JSON path unless the node
  /// describes `rows` x `columns` values.
  LogitsPattern(const JsonNode& node, std::int64_t rows, std::int64_t columns);

  void row(std::int64_t row, std::vector<double>& values) const;
  /// Every value the pattern can take (literals, generator values, sets).
  std::vector<double> values() const;

 private:
  struct Set {
    Range rows;
    Range columns;
    double value = 0;
  };
  void read_generator(const JsonNode& node);
  void read_literal(const JsonNode& node, std::int64_t rows);
  void read_set(const JsonNode& node, std::int64_t rows);

  std::int64_t columns_ = 0;
  std::vector<double> literal_;
  std::int64_t a_ = 0, b_ = 0, c_ = 0, m_ = 1;
  double divisor_ = 1;
  double subtract_ = 0;  ///< a constant v is m = 1, subtract = -v
  std::vector<Set> sets_;
};

/// Ids by row: literal, one constant, or (row a + c) mod m; then `set` entries
/// [row, id].
class IdPattern {
 public:
  IdPattern() = default;
  /// Throws Error{kInvalidArgument} with the JSON path unless the node
  /// describes `ids_per_row` ids for each of `rows` rows.
  IdPattern(const JsonNode& node, std::int64_t rows, std::int64_t ids_per_row);

  std::int64_t at(std::int64_t row, std::int64_t k) const;

 private:
  void read_generator(const JsonNode& node);

  std::int64_t ids_per_row_ = 1;
  std::vector<std::int64_t> literal_;
  std::int64_t a_ = 0, c_ = 0;
  std::int64_t m_ = 0;  ///< 0: the constant c
  std::map<std::int64_t, std::int64_t> sets_;
};

/// An upstream gradient in storage of its own, so that a view with gaps or zero
/// strides can be made of it. `strides` is in elements, over the flattened
/// entries when there is one, and over [rows, ids] when there are two.
struct GradPattern {
  std::vector<double> storage;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  /// Entry n in row-major order of `shape`.
  double at(std::int64_t n) const;
  std::int64_t count() const;
};

/// Literal, const, or {"storage", "offset", "shape", "strides"}.
GradPattern read_grad_pattern(const JsonNode& node, std::int64_t count);

}  // namespace logpjit::tuning
