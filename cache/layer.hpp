// One directory of entries, as the image cache uses it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/entry.hpp"
#include "cache/entry_file.hpp"
#include "cache/file_lock.hpp"
#include "cache/file_system.hpp"
#include "cache/fork_safe_mutex.hpp"
#include "cache/key.hpp"
#include "cache/trusted_path.hpp"
#include "cache/warnings.hpp"

namespace logpjit::cache {

/// Trouble of any kind is a warning and a miss. Safe to share between threads.
class Layer {
 public:
  Layer(FileSystem& files, std::filesystem::path directory, Role role,
        Warnings& warnings);

  /// The entry of exactly this key. A damaged one is set aside in a user
  /// layer; a good one has its stamp renewed there, at most once an hour.
  std::optional<Image> read(const Key& key);

  /// Read-only layers: an entry that differs from `key` in the compiler at
  /// most; the first by name, so that all processes choose alike.
  std::optional<Image> read_sealed(const Key& key);

  /// User layers: stores the entry and says whether that worked.
  bool publish(const Key& key, std::span<const std::byte> entry);

  /// User layers: renames an entry so that it is not found again.
  void set_aside(const std::string& name);

  /// The resolved directory while it can be trusted; made when absent and
  /// `create`.
  std::optional<std::string> path(bool create);

  /// User layers: null where there is no directory to be had.
  std::shared_ptr<LockFile> lock_file();

 private:
  std::optional<Image> accept(const std::string& directory,
                              const std::string& name, FileRead found,
                              bool right_key);
  void renew(const std::string& path, const timespec& stamp);
  std::vector<std::string> sealed_names(const std::string& directory,
                                        const std::string& ending);
  void forget_path();

  FileSystem& files_;
  const std::filesystem::path directory_;
  const Role role_;
  Warnings& warnings_;

  ForkSafeMutex mutex_;
  bool refused_ = false;
  std::optional<std::string> path_;
  std::shared_ptr<LockFile> lock_file_;
  timespec listed_{};  // the directory's stamp when `names_` was read
  std::multimap<std::string, std::string> names_;  // ending -> name
};

/// Renames `directory`/`name` to `<name>.bad`, keeping the newest 16 of those;
/// removes it where that fails.
void set_aside(FileSystem& files, const std::string& directory,
               const std::string& name);

}  // namespace logpjit::cache
