// Text files the program writes.
#include "cli/write_text.hpp"

#include <fmt/format.h>

#include <span>
#include <system_error>

#include "cache/atomic_file.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cli {

void write_text(const std::filesystem::path& file, const std::string& text) {
  const auto whole = std::filesystem::absolute(file);
  const int result = cache::publish_file(
      cache::real_file_system(), whole.parent_path().string(),
      whole.filename().string(), std::as_bytes(std::span(text)));
  if (result == 0) return;
  throw Error(
      ErrorCode::kIo,
      fmt::format("{}: cannot be written: {}", file.string(),
                  std::error_code(-result, std::generic_category()).message()));
}

}  // namespace logpjit::cli
