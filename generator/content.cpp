// Reads template files and computes their digests.
#include "generator/content.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "logpjit/error.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace logpjit::generator {

std::string read_content(const std::filesystem::path& file) {
  // A folder opens like a file, then fails in an unspecified way.
  std::ifstream stream;
  if (!std::filesystem::is_directory(file)) {
    stream.open(file, std::ios::binary);
  }
  std::string content{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot read '{}': check that it is a file and "
                            "that it may be read",
                            file.string()));
  }
  return content;
}

std::string content_digest(std::string_view content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace logpjit::generator
