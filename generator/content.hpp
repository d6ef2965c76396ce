// A template file's bytes and the digest that stands for them in manifests.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace logpjit::generator {

/// The whole file, unchanged. Throws Error{kIo} naming it.
std::string read_content(const std::filesystem::path& file);

/// XXH3-128 of the bytes as 32 lower-case hex digits, high half first.
std::string content_digest(std::string_view content);

}  // namespace logpjit::generator
