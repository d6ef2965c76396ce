// A JSON document read with the path of every value at hand for messages.
#include "tuning/json_node.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "logpjit/error.hpp"

namespace logpjit::tuning {
namespace {

constexpr std::size_t kLongestQuote = 60;

const nlohmann::json& json(const void* node) {
  return *static_cast<const nlohmann::json*>(node);
}

std::optional<double> named_number(const std::string& text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "inf") return kInfinity;
  if (text == "-inf") return -kInfinity;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

template <typename T, typename Read>
void flatten(const JsonNode& node, std::vector<T>& values, Read read) {
  if (!node.is_array()) {
    values.push_back(read(node));
    return;
  }
  for (const JsonNode& element : node.elements()) {
    flatten(element, values, read);
  }
}

}  // namespace

JsonNode::JsonNode(std::shared_ptr<const void> document, const void* node,
                   std::string path)
    : document_(std::move(document)), node_(node), path_(std::move(path)) {}

JsonNode JsonNode::parse(std::string_view text) {
  try {
    auto document = std::make_shared<const nlohmann::json>(
        nlohmann::json::parse(text.begin(), text.end()));
    const void* node = document.get();
    return {std::move(document), node, ""};
  } catch (const nlohmann::json::exception& fault) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("not JSON: {}", fault.what()));
  }
}

bool JsonNode::is_null() const { return json(node_).is_null(); }
bool JsonNode::is_number() const { return json(node_).is_number(); }
bool JsonNode::is_string() const { return json(node_).is_string(); }
bool JsonNode::is_array() const { return json(node_).is_array(); }
bool JsonNode::is_object() const { return json(node_).is_object(); }

double JsonNode::number() const {
  if (is_number()) return json(node_).get<double>();
  if (is_string()) {
    if (const auto value = named_number(string())) return *value;
  }
  expected("a number");
}

std::int64_t JsonNode::integer() const {
  if (!json(node_).is_number_integer()) expected("an integer");
  return json(node_).get<std::int64_t>();
}

std::string JsonNode::string() const {
  if (!is_string()) expected("a string");
  return json(node_).get<std::string>();
}

std::vector<JsonNode> JsonNode::elements() const {
  if (!is_array()) expected("an array");
  std::vector<JsonNode> result;
  for (const auto& element : json(node_)) {
    result.push_back(
        {document_, &element, fmt::format("{}/{}", path_, result.size())});
  }
  return result;
}

JsonNode JsonNode::at(std::string_view key) const {
  if (auto member = find(key)) return *member;
  refuse(fmt::format("has no \"{}\"", key));
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  if (!is_object()) expected("an object");
  const auto member = json(node_).find(std::string(key));
  if (member == json(node_).end() || member->is_null()) return std::nullopt;
  return JsonNode(document_, &*member, fmt::format("{}/{}", path_, key));
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::members() const {
  if (!is_object()) expected("an object");
  std::vector<std::pair<std::string, JsonNode>> result;
  for (const auto& [key, value] : json(node_).items()) {
    result.emplace_back(
        key, JsonNode(document_, &value, fmt::format("{}/{}", path_, key)));
  }
  return result;
}

void JsonNode::allow_only(const std::set<std::string_view>& known) const {
  for (const auto& [key, value] : members()) {
    if (!known.contains(key)) value.refuse("is not a known key");
  }
}

std::string JsonNode::text() const { return json(node_).dump(); }

void JsonNode::refuse(const std::string& reason) const {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}", path_.empty() ? "/" : path_, reason));
}

void JsonNode::expected(std::string_view what) const {
  std::string found = text();
  if (found.size() > kLongestQuote) found.resize(kLongestQuote);
  refuse(fmt::format("expected {}, found {}", what, found));
}

std::vector<double> flat_numbers(const JsonNode& node) {
  std::vector<double> values;
  flatten(node, values, [](const JsonNode& leaf) { return leaf.number(); });
  return values;
}

std::vector<std::int64_t> flat_integers(const JsonNode& node) {
  std::vector<std::int64_t> values;
  flatten(node, values, [](const JsonNode& leaf) { return leaf.integer(); });
  return values;
}

}  // namespace logpjit::tuning
