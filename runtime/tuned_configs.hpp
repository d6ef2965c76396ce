// All tuned configurations that a process knows of.
#pragma once

#include <vector>

#include "logpjit/options.hpp"
#include "runtime/config_lookup.hpp"

namespace logpjit::runtime {

/// The store beside the user's images, then those of read-only caches, then
/// what came with the library. Damaged lines are warned of and left out.
std::vector<TunedConfig> read_tuned_configs(const Options& options);

}  // namespace logpjit::runtime
