// The commands below `logpjit cache`: their flags, and one function for each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cli/flags.hpp"

namespace logpjit::cli {

struct CacheFlags {
  DeviceFlags where;
  std::string entry;         ///< show
  std::string file;          ///< export, import
  KernelFlags kernel;        ///< explain
  std::string arch;          ///< explain
  std::string config;        ///< explain
  std::int64_t bytes = 0;    ///< trim; 0 = the options' limit
  std::int64_t entries = 0;  ///< trim; 0 = the options' limit
  bool json = false;
  bool repair = false;
};

/// The writable directory; Error{kInvalidArgument} when there is none.
std::filesystem::path cache_directory(const CacheFlags& flags);

// Each prints what it found or did and returns the exit code.
int cache_path(const CacheFlags& flags);
int cache_list(const CacheFlags& flags);
int cache_show(const CacheFlags& flags);
int cache_explain(const CacheFlags& flags);
int cache_verify(const CacheFlags& flags);
int cache_trim(const CacheFlags& flags);
int cache_clear(const CacheFlags& flags);
int cache_export(const CacheFlags& flags);
int cache_import(const CacheFlags& flags);

}  // namespace logpjit::cli
