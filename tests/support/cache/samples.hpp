// Keys, images and small file operations that the cache's tests share.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "cache/image_cache.hpp"

namespace logpjit::testing {

inline cache::Key sample_key(int number, std::string compiler = "nvrtc 13.0") {
  cache::Key key;
  key.add("spec", fmt::format("op=logp vocab={}", number));
  key.add("arch", "sm_90a");
  key.add("compiler", compiler);
  return key;
}

/// The bytes follow from number and size, so a wrong image shows.
inline cache::Image sample_image(int number, std::size_t size = 12 * 1024) {
  cache::Image image;
  image.kind = cache::ImageKind::kCubin;
  image.entry = fmt::format("kernel_{}", number);
  image.facts.registers = number % 256;
  image.compile_ms = 12.5;
  auto state = static_cast<unsigned>(number) * 2654435761u + 1;
  for (std::size_t i = 0; i < size; ++i) {
    state = state * 1664525u + 1013904223u;
    image.bytes.push_back(static_cast<std::byte>(state >> 24));
  }
  return image;
}

inline std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes;
  for (std::istreambuf_iterator<char> it(file), end; it != end; ++it) {
    bytes.push_back(static_cast<std::byte>(*it));
  }
  return bytes;
}

inline void write_bytes(const std::filesystem::path& path,
                        const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// Names in a directory that end in `suffix`.
inline std::vector<std::string> names_in(const std::filesystem::path& directory,
                                         const std::string& suffix) {
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(directory)) {
    std::string name = each.path().filename().string();
    if (name.ends_with(suffix)) names.push_back(std::move(name));
  }
  return names;
}

/// Remembers what a cache warned of.
class WarningLog {
 public:
  cache::WarningSink sink() {
    return [this](const std::string& line) {
      const std::lock_guard guard(mutex_);
      lines_.push_back(line);
    };
  }
  std::vector<std::string> lines() const {
    const std::lock_guard guard(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace logpjit::testing
