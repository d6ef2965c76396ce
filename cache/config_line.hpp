// One line of the config file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cache/config_store.hpp"

namespace logpjit::cache {

inline constexpr int kConfigFormat = 1;

struct ParsedLine {
  std::optional<ConfigRecord> record;
  bool newer = false;  ///< intact, of a later format: to be kept, not used
};

/// With a line break at the end. Bytes that are not UTF-8 are replaced.
std::string format_line(const ConfigRecord& record);

/// Never throws; neither record nor `newer` means damage.
ParsedLine parse_line(std::string_view line);

}  // namespace logpjit::cache
