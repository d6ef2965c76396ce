// A JSON document read with the path of every value at hand for messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace logpjit::tuning {

/// One value of a document that it keeps alive. A wrong type or a missing
/// member throws Error{kInvalidArgument} with the JSON path, what was expected
/// and what was found.
class JsonNode {
 public:
  /// Throws Error{kInvalidArgument} with line and column of a syntax error.
  static JsonNode parse(std::string_view text);

  bool is_null() const;
  bool is_number() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  /// A JSON number, or "inf", "-inf", "nan" as a string.
  double number() const;
  std::int64_t integer() const;
  std::string string() const;
  std::vector<JsonNode> elements() const;

  /// A member that must be there / that may be there (null = not there).
  JsonNode at(std::string_view key) const;
  std::optional<JsonNode> find(std::string_view key) const;
  std::vector<std::pair<std::string, JsonNode>> members() const;
  /// Throws unless every member's name is in `known`.
  void allow_only(const std::set<std::string_view>& known) const;

  std::string text() const;  ///< compact JSON
  const std::string& path() const { return path_; }

  /// Throws Error{kInvalidArgument}: "PATH: REASON".
  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  JsonNode(std::shared_ptr<const void> document, const void* node,
           std::string path);
  [[noreturn]] void expected(std::string_view what) const;

  std::shared_ptr<const void> document_;
  const void* node_;
  std::string path_;
};

/// The numbers of an array nested to any depth, in order.
std::vector<double> flat_numbers(const JsonNode& node);
std::vector<std::int64_t> flat_integers(const JsonNode& node);

}  // namespace logpjit::tuning
