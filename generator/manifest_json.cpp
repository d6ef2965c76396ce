// The manifest as JSON text and back.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "generator/manifest.hpp"
#include "logpjit/error.hpp"

namespace logpjit::generator {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<ParameterKind, const char*>, 3> kKinds{
    {{ParameterKind::kType, "type"},
     {ParameterKind::kInteger, "integer"},
     {ParameterKind::kBoolean, "boolean"}}};
constexpr std::array<std::pair<ParameterRole, const char*>, 2> kRoles{
    {{ParameterRole::kSpec, "spec"}, {ParameterRole::kTunable, "tunable"}}};

// --- Writing ----------------------------------------------------------------

template <typename Table, typename Value>
const char* name_in(const Table& table, Value value) {
  for (const auto& [entry, name] : table) {
    if (entry == value) return name;
  }
  return "";
}

template <typename Item>
Json write_all(const std::vector<Item>& items, Json (*write_one)(const Item&)) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(write_one(item));
  return list;
}

Json write_domain(const Domain& domain) {
  if (domain.values.empty()) {
    return {{"low", domain.low}, {"high", domain.high}};
  }
  return {{"values", domain.values}};
}

Json write_parameter(const TemplateParameter& parameter) {
  return {{"name", parameter.name},
          {"kind", name_in(kKinds, parameter.kind)},
          {"role", name_in(kRoles, parameter.role)},
          {"domain", write_domain(parameter.domain)}};
}

Json write_argument(const ArgumentField& field) {
  return {{"name", field.name},
          {"type", field.type},
          {"offset", field.offset},
          {"size", field.size}};
}

Json write_kernel(const KernelManifest& kernel) {
  return {{"name", kernel.name},
          {"qualified_name", kernel.qualified_name},
          {"summary", kernel.summary},
          {"file", kernel.file},
          {"line", kernel.line},
          {"parameters", write_all(kernel.parameters, write_parameter)},
          {"argument_type", kernel.argument_type},
          {"argument_size", kernel.argument_size},
          {"arguments", write_all(kernel.arguments, write_argument)}};
}

Json write_closure_file(const ClosureFile& file) {
  return {{"path", file.path}, {"digest", file.digest}};
}

Json write_template(const TemplateManifest& manifest) {
  return {{"file", manifest.file},
          {"closure", write_all(manifest.closure, write_closure_file)},
          {"kernels", write_all(manifest.kernels, write_kernel)}};
}

// --- Reading ----------------------------------------------------------------

// One JSON value and where it stands, for messages.
class Node {
 public:
  Node(const Json& json, std::string path)
      : json_(json), path_(std::move(path)) {}

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("manifest: {} at '{}': run logpjit-scan again",
                            what, path_.empty() ? "/" : path_));
  }

  bool has(const char* name) const {
    return json_.is_object() && json_.contains(name);
  }

  Node field(const char* name) const {
    if (!json_.is_object()) fail("expected an object");
    const auto found = json_.find(name);
    if (found == json_.end()) fail(fmt::format("no field '{}'", name));
    return Node(*found, fmt::format("{}/{}", path_, name));
  }

  std::string text() const {
    if (!json_.is_string()) fail("expected a string");
    return json_.get<std::string>();
  }

  std::string word() const {
    std::string word = text();
    if (word.empty()) fail("expected a string that is not empty");
    return word;
  }

  std::int64_t integer() const {
    const bool fits = json_.is_number_integer() &&
                      (!json_.is_number_unsigned() ||
                       std::in_range<std::int64_t>(json_.get<std::uint64_t>()));
    if (!fits) fail("expected a 64-bit integer");
    return json_.get<std::int64_t>();
  }

  std::int64_t size() const {
    const std::int64_t value = integer();
    if (value < 0) fail("expected an integer that is not negative");
    return value;
  }

  template <typename Item>
  std::vector<Item> all(Item (*read_one)(const Node&)) const {
    if (!json_.is_array()) fail("expected an array");
    std::vector<Item> items;
    items.reserve(json_.size());
    for (std::size_t i = 0; i < json_.size(); ++i) {
      items.push_back(read_one(Node(json_[i], fmt::format("{}/{}", path_, i))));
    }
    return items;
  }

  template <typename Table>
  auto one_of(const Table& table) const {
    const std::string wanted = text();
    for (const auto& [value, name] : table) {
      if (wanted == name) return value;
    }
    fail(fmt::format("unknown word '{}'", wanted));
  }

 private:
  const Json& json_;
  std::string path_;
};

std::string read_word(const Node& node) { return node.word(); }

Domain read_domain(const Node& node) {
  Domain domain;
  if (node.has("values")) {
    domain.values = node.field("values").all(read_word);
    if (domain.values.empty()) node.field("values").fail("no values");
    return domain;
  }
  domain.low = node.field("low").integer();
  domain.high = node.field("high").integer();
  if (domain.low > domain.high) node.fail("an empty range");
  return domain;
}

TemplateParameter read_parameter(const Node& node) {
  return {.name = node.field("name").word(),
          .kind = node.field("kind").one_of(kKinds),
          .role = node.field("role").one_of(kRoles),
          .domain = read_domain(node.field("domain"))};
}

ArgumentField read_argument(const Node& node) {
  return {.name = node.field("name").word(),
          .type = node.field("type").word(),
          .offset = node.field("offset").size(),
          .size = node.field("size").size()};
}

int read_line(const Node& node) {
  const std::int64_t line = node.integer();
  if (line < 1 || !std::in_range<int>(line)) node.fail("no line number");
  return static_cast<int>(line);
}

KernelManifest read_kernel(const Node& node) {
  return {.name = node.field("name").word(),
          .qualified_name = node.field("qualified_name").word(),
          .summary = node.field("summary").text(),
          .file = node.field("file").word(),
          .line = read_line(node.field("line")),
          .parameters = node.field("parameters").all(read_parameter),
          .argument_type = node.field("argument_type").word(),
          .argument_size = node.field("argument_size").size(),
          .arguments = node.field("arguments").all(read_argument)};
}

std::string read_digest(const Node& node) {
  std::string digest = node.text();
  const bool is_hex =
      digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (digest.size() != 32 || !is_hex) node.fail("expected 32 hex digits");
  return digest;
}

ClosureFile read_closure_file(const Node& node) {
  return {.path = node.field("path").word(),
          .digest = read_digest(node.field("digest"))};
}

TemplateManifest read_template(const Node& node) {
  return {.file = node.field("file").word(),
          .closure = node.field("closure").all(read_closure_file),
          .kernels = node.field("kernels").all(read_kernel)};
}

Json parse_text(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("manifest: not JSON from byte {} on, at '/': run "
                            "logpjit-scan again",
                            error.byte));
  }
}

}  // namespace

Manifest parse_manifest(std::string_view json) {
  const Json document = parse_text(json);
  const Node root(document, "");
  const Node version = root.field("version");
  if (version.integer() != Manifest::kVersion) {
    version.fail(fmt::format("expected version {}, found {}",
                             Manifest::kVersion, version.integer()));
  }
  return {.templates = root.field("templates").all(read_template)};
}

std::string to_json(const Manifest& manifest) {
  const Json document = {
      {"version", Manifest::kVersion},
      {"templates", write_all(manifest.templates, write_template)}};
  // A comment may hold bytes that are not UTF-8; JSON may not.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace logpjit::generator
