// Filling a cache for GPUs that are not here.
#pragma once

#include <string>
#include <vector>

#include "logpjit/options.hpp"
#include "runtime/config_lookup.hpp"

namespace logpjit::cli {

struct FleetRequest {
  std::string archs;
  std::vector<runtime::TunedShape> shapes;
  /// All that tuning there could try, not only what a run would use.
  bool candidates = false;
  bool json = false;
};

/// Compiles the kernels of every shape for every architecture into the cache of
/// `options`, prints a row for each specification and architecture with a
/// closing count (or one JSON document), and returns the exit code: failure
/// when a kernel could not be built or the user ended it. What was compiled is
/// kept whatever happens.
int pretune_archs(const FleetRequest& request, const Options& options);

}  // namespace logpjit::cli
