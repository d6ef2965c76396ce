// Reading the embedded lines.
#include "runtime/shipped_configs.hpp"

#include <algorithm>
#include <string_view>

#include "cache/config_line.hpp"
#include "runtime/embedded_configs.hpp"

namespace logpjit::runtime {

std::vector<cache::ConfigRecord> shipped_configs() {
  std::vector<cache::ConfigRecord> records;
  std::string_view text = embedded_configs();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    auto parsed = cache::parse_line(text.substr(0, end));
    if (parsed.record) records.push_back(*std::move(parsed.record));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return records;
}

}  // namespace logpjit::runtime
