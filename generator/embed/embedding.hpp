// The C++ source that carries the templates inside the library.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "generator/manifest.hpp"

namespace logpjit::generator::embed {

/// Content by path relative to templates/.
using Files = std::map<std::string, std::string>;

/// Templates, common files and preludes of the folder. Throws Error{kIo}.
Files files_to_embed(const std::filesystem::path& templates_dir);

/// Throws Error{kInvalidArgument} naming a closure file that is missing or
/// differs from what the manifest was made from.
void check_digests(const Manifest& manifest, const Files& files);

/// Source that defines embedded_manifest() and embedded_file(). The same input
/// gives the same text.
std::string embedding(const Manifest& manifest, const Files& files);

}  // namespace logpjit::generator::embed
