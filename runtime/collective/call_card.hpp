// What ranks tell each other before a forward, and what follows from it.
#pragma once

#include <cstdint>
#include <exception>
#include <span>

#include "runtime/operations/shard.hpp"

namespace logpjit::runtime {

/// A rank's card: its call, or why it refused it.
struct CallCard {
  static constexpr std::uint64_t kMagic = 0x31647261436a706c;  // "lpjCard1"
  static constexpr std::int64_t kAccepted = -1;

  std::uint64_t magic = kMagic;
  std::int64_t refusal = kAccepted;  ///< the error's code
  ShardSignature signature{};
  char message[376] = {};
};
static_assert(sizeof(CallCard) == 512);

CallCard card_of(const ShardSignature& signature);
/// `refusal` is any exception; its message is cut to fit.
CallCard card_of(const std::exception_ptr& refusal);

/// Returns when all ranks accepted the same call. Else every rank throws: its
/// own refusal, or the lowest refusing rank's message, or the first field that
/// differs from rank 0's.
void check_cards(std::span<const CallCard> cards,
                 const std::exception_ptr& own_refusal);

}  // namespace logpjit::runtime
