// Keeping a cache directory within its limits, oldest use first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cache/file_system.hpp"

namespace logpjit::cache {

/// Entries and entries set aside count; lock and tuned configs do not.
struct Limits {
  std::uint64_t bytes = std::uint64_t{1} << 30;
  std::uint64_t entries = 20000;
};

struct TrimResult {
  std::uint64_t removed_entries = 0;
  std::uint64_t removed_bytes = 0;
  std::uint64_t kept_entries = 0;
  std::uint64_t kept_bytes = 0;
};

/// Over a limit, removes the entries whose stamp (modification time, renewed
/// by use) is oldest until nine tenths of it are left; also what killed
/// processes left behind an hour ago or longer. Readers of a removed entry
/// finish undisturbed. Errors of single files are passed over.
TrimResult trim(FileSystem& files, const std::string& directory,
                const Limits& limits);

/// Says after which publishes to trim, so that the limits hold to about a
/// hundredth per process without a scan each time. Safe between threads.
class TrimPace {
 public:
  explicit TrimPace(const Limits& limits);
  /// Counts one publish; true when a trim is due.
  bool due(std::uint64_t bytes);

 private:
  const std::uint64_t every_bytes_;
  const std::uint64_t every_entries_;
  std::atomic<std::uint64_t> bytes_;
  std::atomic<std::uint64_t> entries_;
};

}  // namespace logpjit::cache
