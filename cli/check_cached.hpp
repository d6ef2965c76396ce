// Proving that a list of kernels is in the caches.
#pragma once

#include <filesystem>
#include <string>

#include "logpjit/options.hpp"

namespace logpjit::cli {

struct CheckRequest {
  std::filesystem::path list;  ///< as spec_list.hpp says
  std::string archs;           ///< for lines that name none; may be empty
};

/// Looks every kernel of the list up in the caches of `options`, compiles
/// nothing, prints what is missing with its key and a closing count (or one
/// JSON document), and returns the exit code: success when nothing is missing.
int check_cached(const CheckRequest& request, const Options& options,
                 bool json);

}  // namespace logpjit::cli
