// Whether a directory can be trusted to hold code that will be run.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>

#include "cache/file_system.hpp"

namespace logpjit::cache {

enum class Role {
  kUser,      ///< written to; owned by the effective user
  kReadOnly,  ///< owned by the effective user or by root; never written
};

struct TrustedPath {
  enum class State { kTrusted, kAbsent, kRefused };

  State state = State::kRefused;
  std::string path;     ///< without links; set when trusted
  std::string refusal;  ///< what is wrong and what to do, when refused
};

/// Walks to `directory` from the root, following links. Refuses: a relative
/// path; a component that is no directory or cannot be searched; a
/// world-writable one without sticky bit; a link planted by another user in a
/// world-writable directory; a directory of another owner than `role` allows,
/// or one that group or others may write. With `create`, missing components
/// are made with mode 0700.
TrustedPath trust(FileSystem& files, const std::filesystem::path& directory,
                  Role role, bool create);

/// Why a file in such a directory is not to be read (no regular file, of
/// another user, writable by others), or empty.
std::string distrust(const struct stat& file);

}  // namespace logpjit::cache
