// Proving that a list of kernels is in the caches.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "logpjit/options.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace logpjit::cli {

/// Adds --check FILE, with which the flags in `needed` are so no longer, since
/// a list names its kernels itself.
CLI::Option* add_check_flag(CLI::App& app, std::string& file,
                            std::vector<std::string> needed);

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
