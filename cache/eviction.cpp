// Choosing and removing the entries that have not been used for longest.
#include "cache/eviction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <tuple>
#include <vector>

#include "cache/entry_name.hpp"

namespace logpjit::cache {
namespace {

constexpr std::uint64_t kPaceParts = 100;
constexpr std::time_t kAbandonedSeconds = 3600;

struct Candidate {
  std::string path;
  timespec stamp{};
  std::uint64_t bytes = 0;
};

bool older(const Candidate& a, const Candidate& b) {
  return std::tie(a.stamp.tv_sec, a.stamp.tv_nsec, a.path) <
         std::tie(b.stamp.tv_sec, b.stamp.tv_nsec, b.path);
}

/// Nine tenths of a limit that is exceeded, the limit itself otherwise.
std::uint64_t goal(std::uint64_t present, std::uint64_t limit) {
  return present > limit ? limit - limit / 10 : limit;
}

/// Collects what counts, and removes abandoned temporaries on the way.
std::vector<Candidate> survey(FileSystem& files, const std::string& directory) {
  std::vector<std::string> names;
  std::vector<Candidate> found;
  if (files.list(directory, names) != 0) return found;
  const std::time_t now = std::time(nullptr);
  for (const std::string& name : names) {
    const bool counts = is_entry_name(name) || is_bad_name(name);
    if (!counts && !is_temporary_name(name)) continue;
    const std::string path = fmt::format("{}/{}", directory, name);
    struct stat status {};
    if (files.status(path, status) != 0) continue;
    if (counts) {
      found.push_back(
          {path, status.st_mtim, static_cast<std::uint64_t>(status.st_size)});
    } else if (status.st_mtim.tv_sec + kAbandonedSeconds <= now) {
      files.remove(path);
    }
  }
  return found;
}

}  // namespace

TrimResult trim(FileSystem& files, const std::string& directory,
                const Limits& limits) {
  std::vector<Candidate> found = survey(files, directory);
  TrimResult result;
  result.kept_entries = found.size();
  for (const Candidate& each : found) result.kept_bytes += each.bytes;
  const std::uint64_t entries = goal(result.kept_entries, limits.entries);
  const std::uint64_t bytes = goal(result.kept_bytes, limits.bytes);
  std::sort(found.begin(), found.end(), older);
  for (const Candidate& each : found) {
    if (result.kept_entries <= entries && result.kept_bytes <= bytes) break;
    if (files.remove(each.path) != 0) continue;
    ++result.removed_entries;
    result.removed_bytes += each.bytes;
    --result.kept_entries;
    result.kept_bytes -= each.bytes;
  }
  return result;
}

// Starts full: a process that publishes once must trim, too.
TrimPace::TrimPace(const Limits& limits)
    : every_bytes_(limits.bytes / kPaceParts),
      every_entries_(limits.entries / kPaceParts),
      bytes_(every_bytes_),
      entries_(every_entries_) {}

bool TrimPace::due(std::uint64_t bytes) {
  const bool full = (bytes_ += bytes) >= every_bytes_;
  const bool many = ++entries_ >= every_entries_;
  if (!full && !many) return false;
  bytes_ = 0;
  entries_ = 0;
  return true;
}

}  // namespace logpjit::cache
