// What a case of a case file expects.
#include "tuning/case_expected.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>

namespace logpjit::tuning {
namespace {

struct Size {
  std::int64_t rows;
  std::int64_t columns;
};

Tolerance read_tolerance(const JsonNode& node) {
  node.allow_only({"abs", "rel"});
  const Tolerance result{node.at("abs").number(), node.at("rel").number()};
  if (!(result.absolute >= 0) || !(result.relative >= 0)) {
    node.refuse("a tolerance is 0 or more");
  }
  return result;
}

CasePolicy read_policy(const JsonNode& node) {
  if (node.string() == "ignored-id") return CasePolicy::kIgnoredId;
  if (node.string() == "undefined-row") return CasePolicy::kUndefinedRow;
  node.refuse("is neither ignored-id nor undefined-row");
}

void check_cell(const JsonNode& node, const Size& size, std::int64_t row,
                std::int64_t column) {
  if (row < 0 || row >= size.rows || column < 0 || column >= size.columns) {
    node.refuse(fmt::format("is outside [{}, {}]", size.rows, size.columns));
  }
}

std::vector<double> read_counted(const JsonNode& node, std::int64_t count) {
  auto values = flat_numbers(node);
  if (static_cast<std::int64_t>(values.size()) != count) {
    node.refuse(
        fmt::format("has {} values, {} are expected", values.size(), count));
  }
  return values;
}

void read_rows_by_name(const JsonNode& node, const Size& size,
                       CaseExpected& expected) {
  for (const auto& [key, values] : node.members()) {
    std::int64_t row = 0;
    const char* end = key.data() + key.size();
    if (std::from_chars(key.data(), end, row).ptr != end) {
      values.refuse("is not a row number");
    }
    check_cell(values, size, row, 0);
    expected.gradient_rows[row] = read_counted(values, size.columns);
  }
}

void read_probes(const JsonNode& node, const Size& size,
                 CaseExpected& expected) {
  for (const JsonNode& entry : node.elements()) {
    const auto parts = entry.elements();
    if (parts.size() != 3) entry.refuse("is not [row, column, value]");
    const Probe probe{parts[0].integer(), parts[1].integer(),
                      parts[2].number()};
    check_cell(entry, size, probe.row, probe.column);
    expected.gradient_probes.push_back(probe);
  }
}

void read_zeros(const JsonNode& node, const Size& size,
                CaseExpected& expected) {
  if (const auto cells = node.find("exact_zero")) {
    for (const JsonNode& cell : cells->elements()) {
      const auto pair = flat_integers(cell);
      if (pair.size() != 2) cell.refuse("is not [row, column]");
      check_cell(cell, size, pair[0], pair[1]);
      expected.exact_zero.emplace_back(pair[0], pair[1]);
    }
  }
  if (const auto rows = node.find("exact_zero_rows")) {
    for (const JsonNode& row : rows->elements()) {
      check_cell(row, size, row.integer(), 0);
      expected.exact_zero_rows.push_back(row.integer());
    }
  }
}

void read_gradients(const JsonNode& node, const Size& size,
                    CaseExpected& expected) {
  for (const char* name :
       {"dlogits", "dlogits_forward", "dlogits_reverse", "dlogits_logp",
        "dlogits_entropy", "dlogits_bf16_rne"}) {
    if (const auto values = node.find(name)) {
      expected.gradients[name] =
          read_counted(*values, size.rows * size.columns);
    }
  }
  if (const auto rows = node.find("dlogits_rows")) {
    read_rows_by_name(*rows, size, expected);
  }
  if (const auto probes = node.find("dlogits_probe")) {
    read_probes(*probes, size, expected);
  }
  if (const auto shape = node.find("dlogits_shape")) {
    expected.gradient_shape = flat_integers(*shape);
  }
  read_zeros(node, size, expected);
}

void read_rows(const JsonNode& node, const Size& size, CaseExpected& expected) {
  const auto list = node.find("rows");
  if (!list) return;
  for (const JsonNode& row : list->elements()) {
    check_cell(row, {size.rows, 1}, row.integer(), 0);
    expected.rows.push_back(row.integer());
  }
}

void read_values(const JsonNode& node, const Size& size,
                 std::int64_t ids_per_row, std::int64_t k,
                 CaseExpected& expected) {
  const std::int64_t listed =
      expected.rows.empty() ? size.rows : std::ssize(expected.rows);
  const std::pair<const char*, std::int64_t> names[] = {
      {"logp", ids_per_row}, {"logp_temperature_2", ids_per_row},
      {"entropy", 1},        {"kl_forward", 1},
      {"kl_reverse", 1},     {"lse", 1},
      {"topk_ids", k},       {"topk_logp", k}};
  for (const auto& [name, width] : names) {
    if (const auto values = node.find(name)) {
      expected.values[name] = read_counted(*values, listed * width);
    }
  }
}

void read_rules(const JsonNode& node, CaseExpected& expected) {
  if (const auto tol = node.find("tol")) {
    expected.tolerance = read_tolerance(*tol);
  }
  if (const auto tol = node.find("tol_grad")) {
    expected.gradient_tolerance = read_tolerance(*tol);
  }
  if (const auto policy = node.find("policy")) {
    expected.policy = read_policy(*policy);
  }
}

std::string text_of(const JsonNode& node, std::string_view key) {
  const auto value = node.find(key);
  if (!value) return {};
  return value->is_string() ? value->string() : value->text();
}

}  // namespace

bool Tolerance::near(double x, double right) const {
  if (std::isnan(right)) return std::isnan(x);
  if (std::isinf(right) || std::isinf(x)) return x == right;
  return std::fabs(x - right) <= absolute + relative * std::fabs(right);
}

CaseExpected read_case_expected(const JsonNode& node, std::int64_t rows,
                                std::int64_t columns, std::int64_t ids_per_row,
                                std::int64_t k) {
  node.allow_only({"rows",
                   "logp",
                   "entropy",
                   "kl_forward",
                   "kl_reverse",
                   "lse",
                   "topk_ids",
                   "topk_logp",
                   "logp_temperature_2",
                   "dlogits",
                   "dlogits_rows",
                   "dlogits_probe",
                   "dlogits_forward",
                   "dlogits_reverse",
                   "dlogits_logp",
                   "dlogits_entropy",
                   "dlogits_bf16_rne",
                   "dlogits_shape",
                   "exact_zero",
                   "exact_zero_rows",
                   "tol",
                   "tol_grad",
                   "policy",
                   "note",
                   "bug_would_give",
                   "also_acceptable",
                   "behaviour",
                   "invariants",
                   "memory"});
  const Size size{rows, columns};
  CaseExpected expected;
  read_rows(node, size, expected);
  read_values(node, size, ids_per_row, k, expected);
  read_gradients(node, size, expected);
  read_rules(node, expected);
  expected.also_acceptable = text_of(node, "also_acceptable");
  expected.behaviour = text_of(node, "behaviour");
  expected.memory = text_of(node, "memory");
  expected.bug_would_give = text_of(node, "bug_would_give");
  return expected;
}

}  // namespace logpjit::tuning
