// Reading conformance cases from JSON: every check of the format is here.
#include "tuning/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "logpjit/error.hpp"
#include "tuning/numeric.hpp"

namespace logpjit::tuning {
namespace {

DType read_float_dtype(const JsonNode& node) {
  const auto dtype = parse_dtype(node.string());
  if (!dtype || !is_float(*dtype)) node.refuse("is not fp32, bf16 or fp16");
  return *dtype;
}

DType read_id_dtype(const JsonNode& node) {
  const auto dtype = parse_dtype(node.string());
  if (!dtype || is_float(*dtype)) node.refuse("is neither int32 nor int64");
  return *dtype;
}

std::vector<std::string> split(const JsonNode& node) {
  static const std::set<std::string> kKnown = {
      "logp",     "entropy", "kl_forward",     "kl_reverse",
      "topk",     "bwd",     "logp_bwd",       "entropy_bwd",
      "topk_bwd", "lse",     "kl_forward_bwd", "kl_reverse_bwd"};
  std::vector<std::string> parts;
  std::string text = node.string() + "+";
  for (std::size_t end; (end = text.find('+')) != std::string::npos;) {
    parts.push_back(text.substr(0, end));
    text.erase(0, end + 1);
    if (!kKnown.contains(parts.back())) {
      node.refuse(fmt::format("has the unknown part \"{}\"", parts.back()));
    }
  }
  return parts;
}

void read_shape(const JsonNode& node, Case& result) {
  const JsonNode shape = node.at("shape");
  result.shape = flat_integers(shape);
  if (result.shape.size() != 2 && result.shape.size() != 3) {
    shape.refuse("is neither [N, V] nor [B, S, V]");
  }
  std::int64_t product = 1;
  for (std::int64_t dimension : result.shape) {
    if (dimension < 0) shape.refuse("has a negative dimension");
    if (__builtin_mul_overflow(product, dimension, &product)) {
      shape.refuse("has more elements than 64 bits can count");
    }
  }
}

void read_strides(const JsonNode& node, Case& result) {
  result.strides.assign(result.shape.size(), 1);
  for (std::size_t d = result.shape.size() - 1; d-- > 0;) {
    result.strides[d] = result.strides[d + 1] * result.shape[d + 1];
  }
  const auto given = node.find("strides");
  if (!given) return;
  result.strides = flat_integers(*given);
  if (result.strides.size() != result.shape.size()) {
    given->refuse("has not one stride per dimension");
  }
  for (std::int64_t stride : result.strides) {
    if (stride < 0) given->refuse("has a negative stride");
  }
}

void read_layout(const JsonNode& extra, Case& result) {
  const auto node = extra.find("layout");
  if (!node) return;
  node->allow_only({"storage_numel", "offset", "outside"});
  CaseLayout layout;
  layout.storage_elements = node->at("storage_numel").integer();
  layout.offset = node->at("offset").integer();
  const std::string outside = node->at("outside").string();
  if (outside != "nan" && outside != "none" && outside != "untouched") {
    node->at("outside").refuse("is none of nan, none, untouched");
  }
  layout.poison_outside = outside == "nan";
  if (layout.offset < 0 ||
      layout.offset + result.extent() > layout.storage_elements) {
    node->refuse("the view goes past its storage");
  }
  result.layout = layout;
}

void read_temperature(const JsonNode& extra, Case& result) {
  const auto node = extra.find("temperature");
  if (!node) return;
  result.temperature = flat_numbers(*node);
  if (node->is_array() &&
      static_cast<std::int64_t>(result.temperature.size()) != result.rows()) {
    node->refuse("has not one value per row");
  }
  for (double value : result.temperature) {
    if (!(value > 0) || std::isinf(value)) node->refuse("is not above 0");
  }
}

void read_row_mask(const JsonNode& extra, Case& result) {
  const auto node = extra.find("row_mask");
  if (!node) return;
  for (std::int64_t value : flat_integers(*node)) {
    if (value != 0 && value != 1) node->refuse("has a value besides 0 and 1");
    result.row_mask.push_back(static_cast<std::uint8_t>(value));
  }
  if (static_cast<std::int64_t>(result.row_mask.size()) != result.rows()) {
    node->refuse("has not one value per row");
  }
}

std::vector<Range> read_shards(const JsonNode& node, std::int64_t columns) {
  std::vector<Range> ranges;
  std::int64_t reached = 0;
  for (const JsonNode& entry : node.elements()) {
    const auto pair = flat_integers(entry);
    if (pair.size() != 2) entry.refuse("is not a range [low, high)");
    if (pair[0] != reached || pair[1] < pair[0]) {
      entry.refuse(fmt::format("does not follow on column {}", reached));
    }
    reached = pair[1];
    ranges.push_back({pair[0], pair[1]});
  }
  if (reached != columns) {
    node.refuse(fmt::format("ends at column {} of {}", reached, columns));
  }
  return ranges;
}

void read_all_shards(const JsonNode& extra, Case& result) {
  if (const auto node = extra.find("shards")) {
    result.shards = read_shards(*node, result.columns());
  }
  if (const auto node = extra.find("also_shards")) {
    for (const JsonNode& entry : node->elements()) {
      result.other_shards.push_back(read_shards(entry, result.columns()));
    }
  }
  if (const auto node = extra.find("shards_too")) {
    result.other_shards.push_back(read_shards(*node, result.columns()));
  }
}

void read_gradients(const JsonNode& extra, Case& result) {
  for (const char* name :
       {"grad_out", "grad_logp", "grad_entropy", "grad_kl"}) {
    const auto node = extra.find(name);
    if (!node) continue;
    const bool by_id = name == std::string_view("grad_out") ||
                       name == std::string_view("grad_logp");
    const std::int64_t width = by_id ? result.ids_per_row : 1;
    result.gradients[name] = read_grad_pattern(*node, result.rows() * width);
  }
}

void read_variants(const JsonNode& extra, Case& result) {
  if (const auto node = extra.find("run_with_dtypes")) {
    for (const JsonNode& entry : node->elements()) {
      result.dtypes.push_back(read_float_dtype(entry));
    }
  }
  if (const auto node = extra.find("run_with_id_dtypes")) {
    for (const JsonNode& entry : node->elements()) {
      result.id_dtypes.push_back(read_id_dtype(entry));
    }
  }
}

void check_exact(const LogitsPattern& pattern, const JsonNode& node,
                 DType dtype) {
  for (double value : pattern.values()) {
    if (std::isnan(value) || rounded(value, dtype) == value) continue;
    node.refuse(
        fmt::format("the value {} is not exact in {}", value, name(dtype)));
  }
}

void read_logits(const JsonNode& node, const JsonNode& extra, Case& result) {
  const JsonNode logits = node.at("logits");
  result.logits = LogitsPattern(logits, result.rows(), result.columns());
  check_exact(result.logits, logits, result.dtype);
  for (DType dtype : result.dtypes) check_exact(result.logits, logits, dtype);
  if (const auto teacher = extra.find("teacher")) {
    result.teacher = LogitsPattern(*teacher, result.rows(), result.columns());
    check_exact(*result.teacher, *teacher, result.dtype);
  }
}

void read_ids_of(const JsonNode& node, const JsonNode& extra, Case& result) {
  if (const auto count = extra.find("ids_per_row")) {
    result.ids_per_row = count->integer();
    if (result.ids_per_row < 1) count->refuse("must be 1 or more");
  }
  const auto ids = node.find("ids");
  if (!ids) return;
  result.has_ids = true;
  result.ids = IdPattern(*ids, result.rows(), result.ids_per_row);
}

void read_limits(const JsonNode& extra, Case& result) {
  if (const auto k = extra.find("k")) result.k = k->integer();
  if (const auto text = extra.find("procedure")) {
    result.procedure = text->string();
  }
  if (const auto limit = extra.find("timeout_seconds")) {
    result.timeout_s = limit->number();
  }
  if (const auto limit = extra.find("compile_seconds_max")) {
    result.compile_s_max = limit->number();
  }
}

void check_consistency(const JsonNode& node, const Case& one) {
  const auto& values = one.expected.values;
  if (values.contains("logp") && !one.has_ids) {
    node.at("expected").refuse("has logp, but the case has no ids");
  }
  if ((values.contains("kl_forward") || values.contains("kl_reverse")) &&
      !one.teacher) {
    node.at("expected").refuse("has a KL, but the case has no teacher");
  }
}

Case read_case(const JsonNode& node) {
  node.allow_only({"id", "source", "kind", "op", "dtype", "shape", "strides",
                   "logits", "ids", "extra", "expected"});
  const JsonNode extra = node.at("extra");
  extra.allow_only({"layout",
                    "grad_out",
                    "grad_logp",
                    "grad_entropy",
                    "grad_kl",
                    "teacher",
                    "temperature",
                    "row_mask",
                    "ids_per_row",
                    "k",
                    "shards",
                    "also_shards",
                    "shards_too",
                    "run_with_dtypes",
                    "run_with_id_dtypes",
                    "procedure",
                    "timeout_seconds",
                    "compile_seconds_max",
                    "note",
                    "row_order",
                    "ids_formula"});
  Case result;
  result.id = node.at("id").string();
  for (const JsonNode& entry : node.at("source").elements()) {
    result.source.push_back(entry.string());
  }
  result.kind = node.at("kind").string();
  result.op = node.at("op").string();
  result.parts = split(node.at("op"));
  result.dtype = read_float_dtype(node.at("dtype"));
  read_shape(node, result);
  read_strides(node, result);
  read_layout(extra, result);
  read_variants(extra, result);
  read_logits(node, extra, result);
  read_ids_of(node, extra, result);
  read_gradients(extra, result);
  read_temperature(extra, result);
  read_row_mask(extra, result);
  read_all_shards(extra, result);
  read_limits(extra, result);
  result.expected =
      read_case_expected(node.at("expected"), result.rows(), result.columns(),
                         result.ids_per_row, result.k);
  check_consistency(node, result);
  return result;
}

std::string label(const JsonNode& node, std::size_t index) {
  if (node.is_object()) {
    const auto id = node.find("id");
    if (id && id->is_string()) return id->string();
  }
  return fmt::format("number {}", index);
}

}  // namespace

std::vector<Case> parse_cases(std::string_view json) {
  std::vector<Case> cases;
  std::set<std::string> ids;
  for (const JsonNode& node : JsonNode::parse(json).elements()) {
    try {
      cases.push_back(read_case(node));
      if (!ids.insert(cases.back().id).second) {
        node.at("id").refuse("is given to two cases");
      }
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("case {}: {}", label(node, cases.size()),
                              error.message()));
    }
  }
  return cases;
}

std::vector<Case> read_cases(const std::filesystem::path& file) {
  std::error_code fault;
  std::ifstream in(file, std::ios::binary);
  if (!std::filesystem::is_regular_file(file, fault) || !in) {
    throw Error(ErrorCode::kIo,
                fmt::format("{}: cannot be read: give a case file, in the form "
                            "of tests/conformance/README.md",
                            file.string()));
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  try {
    return parse_cases(text);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{}: {}", file.string(), error.message()));
  }
}

}  // namespace logpjit::tuning
