// logpjit cache verify, trim, clear, export and import: looking after it.
#include <fmt/format.h>

#include "cache/bundle.hpp"
#include "cache/maintenance.hpp"
#include "cli/cache_commands.hpp"
#include "cli/command.hpp"

namespace logpjit::cli {
namespace {

std::uint64_t limit(const char* flag, std::int64_t asked,
                    std::uint64_t otherwise) {
  return asked == 0 ? otherwise
                    : static_cast<std::uint64_t>(check_positive(flag, asked));
}

}  // namespace

int cache_verify(const CacheFlags& flags) {
  const auto result = cache::check_entries(
      cache::real_file_system(), cache_directory(flags), flags.repair);
  for (const cache::Problem& problem : result.problems) {
    fmt::print("{}: {}\n", problem.name, problem.reason);
  }
  for (const std::string& name : result.debris) {
    fmt::print("{}: left over\n", name);
  }
  fmt::print("{} good, {} damaged{}, {} left over, {} of a newer format\n",
             result.good, result.problems.size(),
             result.repaired ? " (removed)" : "", result.debris.size(),
             result.newer_format);
  return result.problems.empty() || result.repaired ? kSuccess : kFailed;
}

int cache_trim(const CacheFlags& flags) {
  const Options options = flags.where.options();
  const auto directory = cache_directory(flags);
  const auto result = cache::trim_entries(
      cache::real_file_system(), directory,
      {limit("--max-bytes", flags.bytes, options.cache_max_bytes),
       limit("--max-entries", flags.entries, options.cache_max_entries)});
  fmt::print(
      "{} entries of {} bytes removed from {}, {} entries of {} bytes kept\n",
      result.removed_entries, result.removed_bytes, directory.string(),
      result.kept_entries, result.kept_bytes);
  return kSuccess;
}

int cache_clear(const CacheFlags& flags) {
  const auto directory = cache_directory(flags);
  fmt::print("{} entries removed from {}\n",
             cache::clear_entries(cache::real_file_system(), directory),
             directory.string());
  return kSuccess;
}

int cache_export(const CacheFlags& flags) {
  const auto result =
      cache::export_entries(cache::real_file_system(), cache_directory(flags),
                            std::filesystem::absolute(flags.file));
  fmt::print("{} entries, {} bytes written to {}\n", result.entries,
             result.bytes, flags.file);
  return kSuccess;
}

int cache_import(const CacheFlags& flags) {
  const auto directory = cache_directory(flags);
  const auto result =
      cache::import_entries(cache::real_file_system(),
                            std::filesystem::absolute(flags.file), directory);
  fmt::print("{} entries added to {}, {} were there already\n", result.added,
             directory.string(), result.present);
  return kSuccess;
}

}  // namespace logpjit::cli
