// A directory of a test's own, removed with it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace logpjit::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory()
      : TemporaryDirectory(std::filesystem::temp_directory_path()) {}
  explicit TemporaryDirectory(const std::filesystem::path& parent) {
    std::string name = (parent / "logpjit-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("no temporary directory");
    }
    path_ = std::filesystem::canonical(name);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Where writes need not wait for a disk, if there is such a place.
inline std::filesystem::path memory_directory() {
  const std::filesystem::path shared = "/dev/shm";
  return std::filesystem::is_directory(shared)
             ? shared
             : std::filesystem::temp_directory_path();
}

}  // namespace logpjit::testing
