// The names of files in a cache directory.
#pragma once

#include <string>
#include <string_view>

#include "cache/key.hpp"

namespace logpjit::cache {

inline constexpr std::string_view kEntrySuffix = ".lpj";
inline constexpr std::string_view kBadSuffix = ".bad";
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";
inline constexpr std::string_view kLockName = "lock";
inline constexpr std::string_view kConfigsName = "configs.jsonl";

/// "<hash>.<sealed hash>.lpj". The second part is the first 16 digits of the
/// hash of `text_without_compiler()`, so that a listing alone finds the entries
/// that a sealed layer may serve.
std::string entry_name(const Key& key);

/// The part of `entry_name` from the second hash on.
std::string sealed_ending(const Key& key);

bool is_entry_name(std::string_view name);
/// An entry that was set aside.
bool is_bad_name(std::string_view name);
bool is_temporary_name(std::string_view name);

}  // namespace logpjit::cache
