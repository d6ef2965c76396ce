// The bytes of an export, version 1 (README.md says it in prose).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace logpjit::cache {

// Head: magic, version, zero. Members: size of name, zero, size of entry; name;
// entry. End: a member head of zeros, then the number of members and the digest
// of all before it.
inline constexpr std::string_view kBundleMagic = "logpjit export\n\n";
inline constexpr std::uint32_t kBundleFormat = 1;
inline constexpr std::size_t kBundleHeadBytes = 16 + 4 + 4;
inline constexpr std::size_t kMemberHeadBytes = 4 + 4 + 8;

}  // namespace logpjit::cache
