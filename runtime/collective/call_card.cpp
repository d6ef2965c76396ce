// Comparing the ranks' calls.
#include "runtime/collective/call_card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "logpjit/error.hpp"

namespace logpjit::runtime {
namespace {

constexpr std::string_view kOp = "vocab-parallel";

std::string number(std::int64_t value) { return fmt::format("{}", value); }
std::string dtype(std::int64_t value) {
  return std::string(name(static_cast<DType>(value)));
}
std::string operation(std::int64_t value) {
  return KernelSpec{.terms = static_cast<Terms>(value)}.op();
}
std::string other(std::int64_t) { return "another one"; }

struct Field {
  std::string_view name;
  std::int64_t ShardSignature::*member;
  std::string (*text)(std::int64_t);
};

constexpr Field kFields[] = {
    {"the operation", &ShardSignature::terms, operation},
    {"the rows", &ShardSignature::rows, number},
    {"the ids per row", &ShardSignature::ids_per_row, number},
    {"the logits' dtype", &ShardSignature::dtype, dtype},
    {"the teacher's dtype", &ShardSignature::other_dtype, dtype},
    {"the direction", &ShardSignature::direction, number},
    {"the vocabulary", &ShardSignature::vocab, number},
    {"the shards' bounds", &ShardSignature::ranges, other},
    {"the merge order", &ShardSignature::order, number},
    {"row_index being given", &ShardSignature::row_map, number},
    {"the temperature", &ShardSignature::temperature, other},
    {"the teacher's temperature", &ShardSignature::other_temperature, other},
    {"the softcap", &ShardSignature::softcap, other},
    {"the teacher's softcap", &ShardSignature::other_softcap, other},
    {"the rows gathered at once", &ShardSignature::block_rows, number},
};

CallCard refusal_card(ErrorCode code, std::string_view message) {
  CallCard card;
  card.refusal = static_cast<std::int64_t>(code);
  const std::size_t length = std::min(message.size(), sizeof card.message - 1);
  std::copy_n(message.begin(), length, card.message);
  return card;
}

[[noreturn]] void disagree(std::size_t rank, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: rank {} made another call than rank 0: {}", kOp,
                          rank, what));
}

void check_refusals(std::span<const CallCard> cards) {
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const CallCard& card = cards[rank];
    if (card.magic != CallCard::kMagic) {
      disagree(rank, "it is in the middle of something else");
    }
    if (card.refusal == CallCard::kAccepted) continue;
    throw Error(static_cast<ErrorCode>(card.refusal),
                fmt::format("{}: rank {} refused the call: {}", kOp, rank,
                            card.message));
  }
}

}  // namespace

CallCard card_of(const ShardSignature& signature) {
  CallCard card;
  card.signature = signature;
  return card;
}

CallCard card_of(const std::exception_ptr& refusal) {
  try {
    std::rethrow_exception(refusal);
  } catch (const Error& error) {
    return refusal_card(error.code(), error.message());
  } catch (const std::exception& error) {
    return refusal_card(ErrorCode::kInternal, error.what());
  } catch (...) {
    return refusal_card(ErrorCode::kInternal, "an unknown exception");
  }
}

void check_cards(std::span<const CallCard> cards,
                 const std::exception_ptr& own_refusal) {
  if (own_refusal) std::rethrow_exception(own_refusal);
  check_refusals(cards);
  for (std::size_t rank = 1; rank < cards.size(); ++rank) {
    for (const Field& field : kFields) {
      const std::int64_t wanted = cards[0].signature.*field.member;
      const std::int64_t found = cards[rank].signature.*field.member;
      if (wanted == found) continue;
      disagree(rank, fmt::format("{}: {} instead of {}", field.name,
                                 field.text(found), field.text(wanted)));
    }
  }
}

}  // namespace logpjit::runtime
