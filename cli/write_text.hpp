// Text files the program writes.
#pragma once

#include <filesystem>
#include <string>

namespace logpjit::cli {

/// Whole or not at all; Error{kIo} naming the file.
void write_text(const std::filesystem::path& file, const std::string& text);

}  // namespace logpjit::cli
