// Makes and removes private directories, and moves whole files.
#include "runtime/cpu/temporary_directory.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

#include "logpjit/error.hpp"

namespace logpjit::runtime {

namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory() {
  std::error_code error;
  fs::path parent = fs::temp_directory_path(error);
  if (error) parent = "/tmp";
  std::string name = parent / "logpjit-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot make a directory in {}: {}; set TMPDIR to "
                            "one that can be written to",
                            parent.string(), std::strerror(errno)));
  }
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot write {} bytes to {}: {}", bytes.size(),
                            path.string(), std::strerror(errno)));
  }
}

std::vector<std::byte> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  std::vector<std::byte> bytes(size > 0 ? static_cast<std::size_t>(size) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  if (size < 0 || !file) {
    throw Error(ErrorCode::kIo, fmt::format("cannot read {}: {}", path.string(),
                                            std::strerror(errno)));
  }
  return bytes;
}

}  // namespace logpjit::runtime
