// XXH3-128 by the xxHash library, compiled into this file alone.
#include "cache/digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <new>

namespace logpjit::cache {
namespace {

Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  Digest result;
  static_assert(sizeof(bytes.digest) == sizeof(result));
  std::memcpy(result.data(), bytes.digest, result.size());
  return result;
}

XXH3_state_t* as_state(void* state) {
  return static_cast<XXH3_state_t*>(state);
}

}  // namespace

Digest digest(std::span<const std::byte> bytes) {
  return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

Digest digest(std::string_view text) {
  return canonical(XXH3_128bits(text.data(), text.size()));
}

std::string hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (std::byte byte : digest) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

DigestStream::DigestStream() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(as_state(state_));
}

DigestStream::~DigestStream() { XXH3_freeState(as_state(state_)); }

void DigestStream::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(as_state(state_), bytes.data(), bytes.size());
}

Digest DigestStream::value() const {
  return canonical(XXH3_128bits_digest(as_state(state_)));
}

}  // namespace logpjit::cache
