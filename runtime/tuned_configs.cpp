// Stores read in the order in which they count.
#include "runtime/tuned_configs.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "cache/config_store.hpp"
#include "runtime/shipped_configs.hpp"

namespace logpjit::runtime {

std::vector<TunedConfig> read_tuned_configs(const Options& options) {
  std::vector<TunedConfig> tuned;
  const auto add = [&](const std::vector<cache::ConfigRecord>& records,
                       bool shipped) {
    std::ranges::move(read_records(records, shipped),
                      std::back_inserter(tuned));
  };
  add(cache::ConfigStore(options.cache_directory, cache::Role::kUser,
                         options.log)
          .load(),
      false);
  for (const std::filesystem::path& directory : options.read_only_caches) {
    add(cache::ConfigStore(directory, cache::Role::kReadOnly, options.log)
            .load(),
        true);
  }
  add(shipped_configs(), true);
  return tuned;
}

}  // namespace logpjit::runtime
