// The bytes of one cache entry, format version 1 (README.md says it in prose).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/image.hpp"

namespace logpjit::cache {

inline constexpr std::uint32_t kEntryFormat = 1;
/// Larger files are not entries.
inline constexpr std::size_t kMaxEntryBytes = std::size_t{64} << 20;

struct Entry {
  std::string key_text;
  Image image;

  bool operator==(const Entry&) const = default;
};

enum class EntryState {
  kGood,
  kDamaged,
  /// Intact, written by a later logpjit. A miss, but nothing is wrong with it.
  kNewerFormat,
};

struct Decoded {
  EntryState state = EntryState::kDamaged;
  std::optional<Entry> entry;  ///< with kGood only
  std::string reason;          ///< otherwise
};

/// Throws Error{kInternal} for what no reader would accept: an image without
/// bytes, or more than `kMaxEntryBytes` in all.
std::vector<std::byte> encode(std::string_view key_text, const Image& image);

/// Never throws on any input, never reads outside it; `kGood` only when size,
/// digest and each field are right.
Decoded decode(std::span<const std::byte> file);

}  // namespace logpjit::cache
