// Config records as JSON.
#include "cache/config_line.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace logpjit::cache {
namespace {

using nlohmann::json;

bool read(const json& object, const char* name, std::string& to) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return false;
  to = found->get<std::string>();
  return true;
}

bool read(const json& object, const char* name, double& to) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return false;
  to = found->get<double>();
  return std::isfinite(to) && to >= 0;
}

bool read(const json& object, const char* name,
          std::map<std::string, std::string>& to) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_object()) return false;
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) return false;
    to.emplace(key, value.get<std::string>());
  }
  return true;
}

}  // namespace

std::string format_line(const ConfigRecord& record) {
  const json object = {{"v", kConfigFormat},
                       {"spec", record.spec},
                       {"device", record.device},
                       {"config", record.config},
                       {"time_us", record.time_us},
                       {"spread", record.spread},
                       {"measured_with", record.measured_with}};
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

ParsedLine parse_line(std::string_view line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return {};
  const auto version = object.find("v");
  if (version == object.end() || !version->is_number_integer()) return {};
  const auto number = version->get<std::int64_t>();
  if (number > kConfigFormat) return {std::nullopt, true};
  ConfigRecord record;
  if (number != kConfigFormat || !read(object, "spec", record.spec) ||
      !read(object, "device", record.device) ||
      !read(object, "config", record.config) ||
      !read(object, "time_us", record.time_us) ||
      !read(object, "spread", record.spread) ||
      !read(object, "measured_with", record.measured_with)) {
    return {};
  }
  return {std::move(record), false};
}

}  // namespace logpjit::cache
