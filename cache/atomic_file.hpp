// Files that appear under their name whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cache/file_system.hpp"

namespace logpjit::cache {

/// A private temporary file that `publish` renames. Removed with its life when
/// not published. All results are 0 or -errno; after an error the rest fails
/// with the same.
class AtomicFile {
 public:
  AtomicFile(FileSystem& files, std::string directory);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  int write(std::span<const std::byte> bytes);
  /// Syncs, closes, renames into the directory. What was published is never
  /// read back.
  int publish(const std::string& name);

 private:
  FileSystem& files_;
  const std::string directory_;
  std::string temporary_;
  OpenFile file_;
  int error_ = 0;
  bool published_ = false;
};

/// `bytes` as `directory`/`name`; 0, or -errno with nothing left behind.
int publish_file(FileSystem& files, const std::string& directory,
                 const std::string& name, std::span<const std::byte> bytes);

}  // namespace logpjit::cache
