// The real command, run as users run it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.hpp"

namespace logpjit::cli {

struct ProgramResult {
  int code = 0;  ///< -1 when a signal ended it
  std::string out;
  std::string err;
};

/// Runs `logpjit WORDS...` in an environment without logpjit's variables and
/// with the cache in `cache`; `environment` ("NAME=value") is added to it.
ProgramResult run_logpjit(const std::filesystem::path& cache,
                          std::vector<std::string> words,
                          const std::vector<std::string>& environment = {});

/// The same, with SIGINT (Ctrl-C) sent once stderr holds `said`.
ProgramResult interrupt_logpjit(
    const std::filesystem::path& cache, std::vector<std::string> words,
    const std::string& said, const std::vector<std::string>& environment = {});

/// The text of tuning/report.schema.json.
std::string report_schema();

/// A cache that the whole test program shares, so that each kernel is compiled
/// once.
const std::filesystem::path& shared_cache();

}  // namespace logpjit::cli
