// What people do with a cache directory: list, show, check, clear.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cache/entry.hpp"
#include "cache/eviction.hpp"
#include "cache/file_system.hpp"
#include "cache/trusted_path.hpp"

namespace logpjit::cache {

// All throw Error{kIo} for a directory that cannot be trusted or read, and take
// an absent one for an empty one. All are safe beside running caches.

struct Listed {
  std::string name;
  Entry entry;
  std::uint64_t bytes = 0;
  std::time_t used = 0;  ///< last use, to about an hour
};

/// Calls `use` for each good entry, by name.
void each_entry(FileSystem& files, const std::filesystem::path& directory,
                Role role, const std::function<void(Listed)>& use);

/// The good entries, by name, without the bytes of their images.
std::vector<Listed> list_entries(FileSystem& files,
                                 const std::filesystem::path& directory,
                                 Role role = Role::kUser);

/// The one good entry whose name begins with `prefix` (at least 4 digits of
/// its hash); Error{kInvalidArgument} when none or several do.
Listed find_entry(FileSystem& files, const std::filesystem::path& directory,
                  const std::string& prefix, Role role = Role::kUser);

struct Problem {
  std::string name;
  std::string reason;
};

struct CheckResult {
  std::uint64_t good = 0;
  std::uint64_t newer_format = 0;
  std::vector<Problem> problems;    ///< damaged, misnamed, not to be trusted
  std::vector<std::string> debris;  ///< set aside earlier, or left by a crash
  bool repaired = false;            ///< all problems and debris were removed
};

/// Reads and verifies every entry. With `repair`, removes what is damaged, so
/// that the next use compiles it afresh.
CheckResult check_entries(FileSystem& files,
                          const std::filesystem::path& directory, bool repair,
                          Role role = Role::kUser);

/// Removes all entries and debris; tuned configs, the lock file and files of
/// others stay. Returns the number of entries removed.
std::uint64_t clear_entries(FileSystem& files,
                            const std::filesystem::path& directory);

/// `trim` for a directory that need not exist.
TrimResult trim_entries(FileSystem& files,
                        const std::filesystem::path& directory,
                        const Limits& limits);

/// The resolved directory; nothing when it does not exist (and not `create`).
std::optional<std::string> trusted_directory(
    FileSystem& files, const std::filesystem::path& directory, Role role,
    bool create = false);

}  // namespace logpjit::cache
