// Reading single entry files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cache/entry.hpp"
#include "cache/file_system.hpp"

namespace logpjit::cache {

/// What became of reading one file.
struct FileRead {
  enum class State {
    kGood,
    kAbsent,
    kUnreadable,   ///< an error of the file system; the entry may be fine
    kDamaged,      ///< or not to be trusted; set it aside
    kNewerFormat,  ///< leave it
  };

  State state = State::kAbsent;
  std::optional<Entry> entry;  ///< with kGood only
  std::string reason;          ///< with the bad states
  struct timespec stamp {};    ///< modification time, with kGood
  std::size_t bytes = 0;       ///< size of the file, with kGood
};

/// Opens without following links or waiting on a FIFO, reads the whole, closes,
/// then verifies.
FileRead read_entry_file(FileSystem& files, const std::string& path);

}  // namespace logpjit::cache
