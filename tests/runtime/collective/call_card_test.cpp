// What ranks make of each other's cards.
#include "runtime/collective/call_card.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

#include "logpjit/error.hpp"

namespace logpjit::runtime {
namespace {

using testing::HasSubstr;

ShardSignature signature() {
  return {.rows = 8, .ids_per_row = 1, .terms = 1, .vocab = 100};
}

std::string said(std::vector<CallCard> cards,
                 const std::exception_ptr& own = nullptr) {
  try {
    check_cards(cards, own);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "agreed";
}

TEST(CallCard, EqualCallsAgree) {
  EXPECT_EQ(said({card_of(signature()), card_of(signature())}), "agreed");
}

TEST(CallCard, EveryFieldIsCompared) {
  constexpr std::size_t kFields = sizeof(ShardSignature) / 8;
  for (std::size_t field = 0; field < kFields; ++field) {
    CallCard other = card_of(signature());
    reinterpret_cast<std::int64_t*>(&other.signature)[field] += 1;
    EXPECT_THAT(said({card_of(signature()), other}),
                HasSubstr("rank 1 made another call than rank 0"))
        << field;
    EXPECT_NE(other.signature.digest(), signature().digest());
  }
}

TEST(CallCard, ARefusalIsPassedOn) {
  const auto refusal = std::make_exception_ptr(
      Error(ErrorCode::kUnsupported, "logits: too wide"));
  const std::vector<CallCard> cards{card_of(signature()), card_of(refusal)};
  EXPECT_EQ(said(cards),
            "vocab-parallel: rank 1 refused the call: logits: too wide");
  EXPECT_EQ(said(cards, refusal), "logits: too wide");
}

TEST(CallCard, LongMessagesAreCut) {
  const auto refusal =
      std::make_exception_ptr(std::runtime_error(std::string(2000, 'x')));
  EXPECT_THAT(said({card_of(refusal), card_of(signature())}),
              HasSubstr("refused the call: xxx"));
}

TEST(CallCard, SomethingElseIsNoCard) {
  CallCard other = card_of(signature());
  other.magic = 0;
  EXPECT_THAT(said({card_of(signature()), other}),
              HasSubstr("in the middle of something else"));
}

}  // namespace
}  // namespace logpjit::runtime
