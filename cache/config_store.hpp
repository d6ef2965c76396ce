// Tuned launch configurations on disk: one JSON object a line.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/file_system.hpp"
#include "cache/trusted_path.hpp"
#include "cache/warnings.hpp"

namespace logpjit::cache {

/// One measured winner. Which record serves which device is decided elsewhere.
struct ConfigRecord {
  std::string spec;                           ///< KernelSpec::text()
  std::map<std::string, std::string> device;  ///< silicon features
  std::string config;                         ///< LaunchConfig::text()
  double time_us = 0;
  double spread = 0;                                 ///< relative
  std::map<std::string, std::string> measured_with;  ///< informative

  bool operator==(const ConfigRecord&) const = default;
};

/// The file "configs.jsonl" of a cache directory, which lives apart from the
/// entries: clearing those spares it. Trouble is a warning and never fails a
/// call. Safe to share between threads and processes.
class ConfigStore {
 public:
  /// Nothing as directory = an empty store that takes nothing. `files` must
  /// outlive the store; null = the real one.
  ConfigStore(std::optional<std::filesystem::path> directory, Role role,
              WarningSink warn, FileSystem* files = nullptr);
  ~ConfigStore();
  ConfigStore(const ConfigStore&) = delete;
  ConfigStore& operator=(const ConfigStore&) = delete;

  /// One record per spec and device, the last written; in order of writing.
  /// Lines that are damaged are skipped with one warning naming file and line.
  std::vector<ConfigRecord> load();

  /// Adds records behind all others, in one write under the lock; false after
  /// a warning. Records of other writers are never lost. Throws
  /// Error{kInvalidArgument} for times that are not finite and >= 0.
  bool append(const std::vector<ConfigRecord>& records);

  /// Rewrites the file without superseded and damaged lines. Does nothing where
  /// there are no locks.
  bool compact();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace logpjit::cache
