// How a kernel is launched: the tunable template parameters.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "logpjit/api.hpp"

namespace logpjit {

/// Named small integers ("block" = 512, "unroll" = 4), sorted by name. Which
/// names exist and what values they take is said by the template's manifest.
/// Changes time, never a bit of any result.
class LOGPJIT_API LaunchConfig {
 public:
  LaunchConfig() = default;
  LaunchConfig(std::initializer_list<std::pair<std::string, int>> values);

  /// Adds or replaces.
  void set(std::string_view name, int value);
  std::optional<int> find(std::string_view name) const;
  /// The value, which must be present (Error{kInternal} otherwise).
  int at(std::string_view name) const;
  bool empty() const { return values_.empty(); }
  const std::vector<std::pair<std::string, int>>& values() const {
    return values_;
  }

  /// "block=512,unroll=4".
  std::string text() const;
  /// The inverse of `text()`; throws Error{kInvalidArgument} naming the part
  /// that is not "name=integer".
  static LaunchConfig parse(std::string_view text);

  friend auto operator<=>(const LaunchConfig&, const LaunchConfig&) = default;

 private:
  std::vector<std::pair<std::string, int>> values_;
};

/// Where a launch configuration came from.
enum class ConfigSource {
  kDefault,      ///< not measured
  kExact,        ///< measured for this specification, rows and device
  kNearest,      ///< measured for rows, vocabulary or templates near these
  kOtherDevice,  ///< measured on another device of this architecture
};
/// "default", "exact", "nearest", "other_device".
LOGPJIT_API std::string_view name(ConfigSource source);

}  // namespace logpjit
