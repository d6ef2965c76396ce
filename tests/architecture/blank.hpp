// Blanks comments and literals in C++ text.
#pragma once

#include <string>
#include <string_view>

namespace logpjit::architecture {

/// `text` with every comment and the inside of every literal replaced by
/// spaces; line breaks and all other characters stay where they are.
std::string blank_cpp(std::string_view text);

/// The same for '#' comments (CMake, shell, Python); quotes are respected.
std::string blank_hash(std::string_view text);

}  // namespace logpjit::architecture
