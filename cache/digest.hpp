// XXH3-128, the one digest of keys, entries and exports.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace logpjit::cache {

/// Most significant byte first, the same on every machine.
using Digest = std::array<std::byte, 16>;

Digest digest(std::span<const std::byte> bytes);
Digest digest(std::string_view text);

/// 32 lower-case hex digits.
std::string hex(const Digest& digest);

/// Feeds a digest piece by piece.
class DigestStream {
 public:
  DigestStream();
  ~DigestStream();
  DigestStream(const DigestStream&) = delete;
  DigestStream& operator=(const DigestStream&) = delete;

  void add(std::span<const std::byte> bytes);
  /// Of everything added so far.
  Digest value() const;

 private:
  void* state_;
};

}  // namespace logpjit::cache
