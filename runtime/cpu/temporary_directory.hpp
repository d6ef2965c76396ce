// A private directory that goes with its object.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace logpjit::runtime {

/// Readable by its owner only, under $TMPDIR or /tmp; removed with everything
/// in it by the destructor, on a best-effort basis.
class TemporaryDirectory {
 public:
  /// Throws Error{kIo} naming the directory that cannot be written to.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Both throw Error{kIo} naming the file.
void write_file(const std::filesystem::path& path,
                std::span<const std::byte> bytes);
std::vector<std::byte> read_file(const std::filesystem::path& path);

}  // namespace logpjit::runtime
