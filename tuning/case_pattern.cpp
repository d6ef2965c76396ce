// The number patterns of a case file: logits, ids and upstream gradients.
#include "tuning/case_pattern.hpp"

#include <fmt/format.h>

namespace logpjit::tuning {
namespace {

std::int64_t positive(const JsonNode& node) {
  const std::int64_t value = node.integer();
  if (value < 1) node.refuse("must be 1 or more");
  return value;
}

/// "*", one index, or [low, high).
Range read_range(const JsonNode& node, std::int64_t size) {
  Range range{0, size};
  if (node.is_string()) {
    if (node.string() != "*") node.refuse("is neither \"*\" nor a range");
    return range;
  }
  if (node.is_array()) {
    const auto bounds = flat_integers(node);
    if (bounds.size() != 2) node.refuse("is not a range [low, high)");
    range = {bounds[0], bounds[1]};
  } else {
    range = {node.integer(), node.integer() + 1};
  }
  if (range.low < 0 || range.high < range.low || range.high > size) {
    node.refuse(fmt::format("is not within [0, {})", size));
  }
  return range;
}

void check_count(const JsonNode& node, std::size_t found, std::int64_t wanted) {
  if (static_cast<std::int64_t>(found) == wanted) return;
  node.refuse(fmt::format("has {} values, the shape wants {}", found, wanted));
}

}  // namespace

LogitsPattern::LogitsPattern(const JsonNode& node, std::int64_t rows,
                             std::int64_t columns)
    : columns_(columns) {
  if (!node.is_object()) {
    read_literal(node, rows);
    return;
  }
  read_generator(node);
  if (const auto sets = node.find("set")) {
    for (const JsonNode& entry : sets->elements()) read_set(entry, rows);
  }
}

void LogitsPattern::read_literal(const JsonNode& node, std::int64_t rows) {
  literal_ = flat_numbers(node);
  check_count(node, literal_.size(), rows * columns_);
}

void LogitsPattern::read_generator(const JsonNode& node) {
  const std::string generator = node.at("gen").string();
  if (generator == "const") {
    node.allow_only({"gen", "value", "set"});
    subtract_ = -node.at("value").number();
    return;
  }
  if (generator != "mod") node.at("gen").refuse("is neither const nor mod");
  node.allow_only({"gen", "a", "b", "c", "m", "div", "sub", "set"});
  a_ = node.at("a").integer();
  b_ = node.at("b").integer();
  c_ = node.at("c").integer();
  m_ = positive(node.at("m"));
  divisor_ = node.at("div").number();
  subtract_ = node.at("sub").number();
  if (a_ < 0 || b_ < 0 || c_ < 0) node.refuse("a, b and c must be 0 or more");
  if (!(divisor_ > 0)) node.at("div").refuse("must be above 0");
}

void LogitsPattern::read_set(const JsonNode& node, std::int64_t rows) {
  const auto parts = node.elements();
  if (parts.size() != 3) node.refuse("is not [row, column, value]");
  sets_.push_back({read_range(parts[0], rows), read_range(parts[1], columns_),
                   parts[2].number()});
}

void LogitsPattern::row(std::int64_t row, std::vector<double>& values) const {
  values.resize(static_cast<std::size_t>(columns_));
  if (!literal_.empty()) {
    const auto first = literal_.begin() + row * columns_;
    values.assign(first, first + columns_);
    return;
  }
  std::int64_t step = b_ % m_;
  std::int64_t at = (row % m_ * (a_ % m_) + c_) % m_;
  for (double& value : values) {
    value = static_cast<double>(at) / divisor_ - subtract_;
    at += step;
    if (at >= m_) at -= m_;
  }
  for (const Set& set : sets_) {
    if (!set.rows.contains(row)) continue;
    for (std::int64_t j = set.columns.low; j < set.columns.high; ++j) {
      values[static_cast<std::size_t>(j)] = set.value;
    }
  }
}

std::vector<double> LogitsPattern::values() const {
  std::vector<double> result = literal_;
  if (literal_.empty() && columns_ > 0) {
    for (std::int64_t at = 0; at < m_; ++at) {
      result.push_back(static_cast<double>(at) / divisor_ - subtract_);
    }
  }
  for (const Set& set : sets_) result.push_back(set.value);
  return result;
}

IdPattern::IdPattern(const JsonNode& node, std::int64_t rows,
                     std::int64_t ids_per_row)
    : ids_per_row_(ids_per_row) {
  if (!node.is_object()) {
    literal_ = flat_integers(node);
    check_count(node, literal_.size(), rows * ids_per_row);
    return;
  }
  read_generator(node);
  const auto sets = node.find("set");
  if (!sets) return;
  for (const JsonNode& entry : sets->elements()) {
    const auto pair = flat_integers(entry);
    if (pair.size() != 2) entry.refuse("is not [row, id]");
    if (pair[0] < 0 || pair[0] >= rows) entry.refuse("row out of range");
    sets_[pair[0]] = pair[1];
  }
}

void IdPattern::read_generator(const JsonNode& node) {
  const std::string generator = node.at("gen").string();
  if (generator == "const") {
    node.allow_only({"gen", "value", "set"});
    c_ = node.at("value").integer();
  } else if (generator == "mod") {
    node.allow_only({"gen", "a", "c", "m", "set"});
    a_ = node.at("a").integer();
    c_ = node.at("c").integer();
    m_ = positive(node.at("m"));
  } else {
    node.at("gen").refuse("is neither const nor mod");
  }
}

std::int64_t IdPattern::at(std::int64_t row, std::int64_t k) const {
  if (!literal_.empty()) {
    return literal_[static_cast<std::size_t>(row * ids_per_row_ + k)];
  }
  if (const auto set = sets_.find(row); set != sets_.end()) return set->second;
  return m_ == 0 ? c_ : (row % m_ * (a_ % m_) + c_) % m_;
}

double GradPattern::at(std::int64_t n) const {
  std::int64_t element = offset;
  for (std::size_t d = shape.size(); d-- > 0;) {
    element += n % shape[d] * strides[d];
    n /= shape[d];
  }
  return storage[static_cast<std::size_t>(element)];
}

std::int64_t GradPattern::count() const {
  std::int64_t product = 1;
  for (std::int64_t dimension : shape) product *= dimension;
  return product;
}

GradPattern read_grad_pattern(const JsonNode& node, std::int64_t count) {
  GradPattern grad{{}, 0, {count}, {1}};
  if (!node.is_object()) {
    grad.storage = flat_numbers(node);
    check_count(node, grad.storage.size(), count);
    return grad;
  }
  if (node.find("gen")) {
    node.allow_only({"gen", "value"});
    if (node.at("gen").string() != "const") {
      node.at("gen").refuse("is not const");
    }
    grad.storage.assign(static_cast<std::size_t>(count),
                        node.at("value").number());
    return grad;
  }
  node.allow_only({"storage", "offset", "shape", "strides"});
  grad.storage = flat_numbers(node.at("storage"));
  grad.offset = node.at("offset").integer();
  grad.shape = flat_integers(node.at("shape"));
  grad.strides = flat_integers(node.at("strides"));
  if (grad.shape.size() != grad.strides.size()) {
    node.at("strides").refuse("has not one stride per dimension");
  }
  std::int64_t last = grad.offset;
  for (std::size_t d = 0; d < grad.shape.size(); ++d) {
    if (grad.shape[d] < 0) node.at("shape").refuse("has a negative dimension");
    if (grad.strides[d] < 0) node.at("strides").refuse("has a negative stride");
    last += (grad.shape[d] - 1) * grad.strides[d];
  }
  if (grad.count() != count)
    check_count(node.at("shape"), static_cast<std::size_t>(grad.count()),
                count);
  if (grad.offset < 0 ||
      (count > 0 && last >= static_cast<std::int64_t>(grad.storage.size()))) {
    node.refuse("its view goes past its storage");
  }
  return grad;
}

}  // namespace logpjit::tuning
