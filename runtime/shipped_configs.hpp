// Tuned configurations that come with the library.
#pragma once

#include <vector>

#include "cache/config_store.hpp"

namespace logpjit::runtime {

/// The lines of tuning/shipped/*.jsonl, as the build embedded them.
std::vector<cache::ConfigRecord> shipped_configs();

}  // namespace logpjit::runtime
