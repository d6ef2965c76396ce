// Checks a JSON document against a JSON Schema.
#include "tests/support/json_schema.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <regex>
#include <string_view>

namespace logpjit::testing {
namespace {

using Json = nlohmann::json;

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  return type == "number" && value.is_number();
}

class Checker {
 public:
  explicit Checker(const Json& root) : root_(root) {}

  std::vector<std::string> faults(const Json& schema, const Json& value,
                                  const std::string& path) const {
    std::vector<std::string> found;
    const auto fault = [&](const std::string& what) {
      found.push_back((path.empty() ? "/" : path) + ": " + what);
    };
    const auto add = [&](const std::vector<std::string>& more) {
      found.insert(found.end(), more.begin(), more.end());
    };
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "$ref") {
        add(faults(resolve(rule.get<std::string>()), value, path));
      } else if (keyword == "type") {
        const Json types = rule.is_array() ? rule : Json::array({rule});
        if (std::none_of(types.begin(), types.end(), [&](const Json& type) {
              return is_of_type(value, type.get<std::string>());
            })) {
          fault("is not of type " + rule.dump());
        }
      } else if (keyword == "const") {
        if (value != rule) fault("is not " + rule.dump());
      } else if (keyword == "enum") {
        if (std::find(rule.begin(), rule.end(), value) == rule.end()) {
          fault(value.dump() + " is not one of " + rule.dump());
        }
      } else if (keyword == "minimum") {
        if (value.is_number() && value < rule) fault("is below the minimum");
      } else if (keyword == "maximum") {
        if (value.is_number() && value > rule) fault("is above the maximum");
      } else if (keyword == "exclusiveMinimum") {
        if (value.is_number() && value <= rule)
          fault("is not above " + rule.dump());
      } else if (keyword == "pattern") {
        if (value.is_string() &&
            !std::regex_search(value.get<std::string>(),
                               std::regex(rule.get<std::string>()))) {
          fault("does not match " + rule.dump());
        }
      } else if (keyword == "oneOf") {
        const auto matches =
            std::count_if(rule.begin(), rule.end(), [&](const Json& each) {
              return faults(each, value, path).empty();
            });
        if (matches != 1)
          fault("matches " + std::to_string(matches) + " of oneOf");
      } else if (keyword == "items") {
        for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
          add(faults(rule, value[i], path + "/" + std::to_string(i)));
        }
      } else if (keyword == "required") {
        for (const Json& name : rule) {
          if (value.is_object() && !value.contains(name.get<std::string>())) {
            fault("lacks " + name.dump());
          }
        }
      } else if (keyword == "properties" || keyword == "additionalProperties") {
        continue;  // below, together
      } else if (!is_remark(keyword)) {
        fault("the schema's keyword " + keyword + " is not understood");
      }
    }
    if (value.is_object()) add(member_faults(schema, value, path));
    return found;
  }

 private:
  static bool is_remark(std::string_view keyword) {
    constexpr std::array<std::string_view, 4> kRemarks{"$schema", "title",
                                                       "description", "$defs"};
    return std::find(kRemarks.begin(), kRemarks.end(), keyword) !=
           kRemarks.end();
  }

  std::vector<std::string> member_faults(const Json& schema, const Json& value,
                                         const std::string& path) const {
    std::vector<std::string> found;
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, member] : value.items()) {
      const std::string inner = path + "/" + name;
      std::vector<std::string> more;
      if (properties.contains(name)) {
        more = faults(properties[name], member, inner);
      } else if (schema.contains("additionalProperties")) {
        const Json& others = schema["additionalProperties"];
        if (others.is_object()) {
          more = faults(others, member, inner);
        } else if (!others.get<bool>()) {
          more = {inner + ": is not in the schema"};
        }
      }
      found.insert(found.end(), more.begin(), more.end());
    }
    return found;
  }

  const Json& resolve(const std::string& reference) const {
    return root_.at(Json::json_pointer(reference.substr(1)));
  }

  const Json& root_;
};

}  // namespace

std::vector<std::string> schema_faults(const std::string& schema,
                                       const std::string& document) {
  const Json root = Json::parse(schema);
  return Checker(root).faults(root, Json::parse(document), "");
}

}  // namespace logpjit::testing
