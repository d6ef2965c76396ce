// Launch configurations as sorted name=integer lists.
#include "logpjit/launch_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "logpjit/error.hpp"

namespace logpjit {
namespace {

std::pair<std::string, int> parse_entry(std::string_view entry) {
  const std::size_t equals = entry.find('=');
  int value = 0;
  if (equals != std::string_view::npos && equals > 0) {
    const std::string_view number = entry.substr(equals + 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc{} && end == number.data() + number.size() &&
        !number.empty()) {
      return {std::string(entry.substr(0, equals)), value};
    }
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("launch configuration: '{}' is not name=integer; "
                          "expected a list such as block=512,flight=2",
                          entry));
}

}  // namespace

LaunchConfig::LaunchConfig(
    std::initializer_list<std::pair<std::string, int>> values) {
  for (const auto& [entry_name, value] : values) set(entry_name, value);
}

void LaunchConfig::set(std::string_view entry_name, int value) {
  const auto at = std::lower_bound(values_.begin(), values_.end(), entry_name,
                                   [](const auto& entry, std::string_view key) {
                                     return entry.first < key;
                                   });
  if (at != values_.end() && at->first == entry_name) {
    at->second = value;
  } else {
    values_.emplace(at, entry_name, value);
  }
}

std::optional<int> LaunchConfig::find(std::string_view entry_name) const {
  for (const auto& [key, value] : values_) {
    if (key == entry_name) return value;
  }
  return std::nullopt;
}

int LaunchConfig::at(std::string_view entry_name) const {
  if (const std::optional<int> value = find(entry_name)) return *value;
  throw Error(
      ErrorCode::kInternal,
      fmt::format("launch configuration '{}' has no '{}'", text(), entry_name));
}

std::string LaunchConfig::text() const {
  std::string text;
  for (const auto& [key, value] : values_) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}={}", key, value);
  }
  return text;
}

LaunchConfig LaunchConfig::parse(std::string_view text) {
  LaunchConfig config;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const auto [entry_name, value] = parse_entry(text.substr(0, comma));
    if (config.find(entry_name)) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("launch configuration: '{}' is given twice", entry_name));
    }
    config.set(entry_name, value);
    text.remove_prefix(comma == std::string_view::npos ? text.size()
                                                       : comma + 1);
  }
  return config;
}

std::string_view name(ConfigSource source) {
  switch (source) {
    case ConfigSource::kDefault:
      return "default";
    case ConfigSource::kExact:
      return "exact";
    case ConfigSource::kNearest:
      return "nearest";
    case ConfigSource::kOtherDevice:
      return "other_device";
  }
  return "";
}

}  // namespace logpjit
