// Entries of a directory as one file, to carry them to another machine.
#pragma once

#include <cstdint>
#include <filesystem>

#include "cache/file_system.hpp"

namespace logpjit::cache {

struct ExportResult {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  ///< of the file
};

/// Writes all good entries of `directory` to `file`, which appears whole or not
/// at all. Throws Error{kIo}.
ExportResult export_entries(FileSystem& files,
                            const std::filesystem::path& directory,
                            const std::filesystem::path& file);

struct ImportResult {
  std::uint64_t added = 0;
  std::uint64_t present = 0;  ///< good ones were there already
};

/// Verifies all of `file`, then adds its entries to `directory` (made when
/// absent). Error{kInvalidArgument} names what is wrong with the file; then
/// nothing was written. Error{kIo} for a directory that cannot be used or
/// written; entries added until then are good and stay.
ImportResult import_entries(FileSystem& files,
                            const std::filesystem::path& file,
                            const std::filesystem::path& directory);

}  // namespace logpjit::cache
