// The arithmetic of one mbarrier word, away from any fiber.
#include "runtime/cpu/mbarrier.hpp"

#include <gtest/gtest.h>

namespace logpjit::runtime {
namespace {

std::uint64_t fresh(std::uint32_t arrivals) {
  return pack({.pending = arrivals, .expected = arrivals});
}

TEST(Mbarrier, PacksAndUnpacks) {
  for (const Mbarrier& barrier :
       {Mbarrier{}, Mbarrier{true, 1, 2, 3},
        Mbarrier{false, kMaxMbarrierArrivals, kMaxMbarrierArrivals,
                 kMaxMbarrierBytes},
        Mbarrier{true, 0, 5, -kMaxMbarrierBytes}}) {
    const auto back = unpack(pack(barrier));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->parity, barrier.parity);
    EXPECT_EQ(back->pending, barrier.pending);
    EXPECT_EQ(back->expected, barrier.expected);
    EXPECT_EQ(back->bytes, barrier.bytes);
  }
}

TEST(Mbarrier, KnowsWhatIsNone) {
  for (std::uint64_t word : {std::uint64_t{0}, ~std::uint64_t{0},
                             std::uint64_t{0xa5a5a5a5a5a5a5a5}}) {
    EXPECT_FALSE(unpack(word).has_value());
    const std::uint64_t before = word;
    EXPECT_EQ(change(word, 1, 0), MbarrierChange::kNotInitialized);
    EXPECT_EQ(word, before);
  }
}

TEST(Mbarrier, CompletesWithTheLastArrival) {
  std::uint64_t word = fresh(2);
  for (const bool parity : {true, false, true}) {
    EXPECT_EQ(change(word, 1, 0), MbarrierChange::kPending);
    EXPECT_EQ(unpack(word)->parity, !parity);
    EXPECT_EQ(change(word, 1, 0), MbarrierChange::kCompleted);
    EXPECT_EQ(unpack(word)->parity, parity);
    EXPECT_EQ(unpack(word)->pending, 2u);
  }
}

TEST(Mbarrier, CompletesWithTheLastByte) {
  std::uint64_t word = fresh(1);
  EXPECT_EQ(change(word, 1, 96), MbarrierChange::kPending);
  EXPECT_EQ(change(word, 0, -32), MbarrierChange::kPending);
  EXPECT_EQ(change(word, 0, -64), MbarrierChange::kCompleted);
}

TEST(Mbarrier, BytesMayComeBeforeTheyAreAnnounced) {
  std::uint64_t word = fresh(1);
  EXPECT_EQ(change(word, 0, -64), MbarrierChange::kPending);
  EXPECT_EQ(change(word, 1, 64), MbarrierChange::kCompleted);
}

TEST(Mbarrier, RefusesOneArrivalTooMany) {
  std::uint64_t word = fresh(1);
  EXPECT_EQ(change(word, 1, 16), MbarrierChange::kPending);
  const std::uint64_t before = word;
  EXPECT_EQ(change(word, 1, 0), MbarrierChange::kTooManyArrivals);
  EXPECT_EQ(word, before);
}

TEST(Mbarrier, RefusesMoreBytesThanHardwareCounts) {
  std::uint64_t word = fresh(3);
  EXPECT_EQ(change(word, 1, kMaxMbarrierBytes), MbarrierChange::kPending);
  EXPECT_EQ(change(word, 1, 1), MbarrierChange::kTooManyBytes);
  EXPECT_EQ(change(word, 0, -kMaxMbarrierBytes), MbarrierChange::kPending);
  EXPECT_EQ(change(word, 0, -kMaxMbarrierBytes), MbarrierChange::kPending);
  EXPECT_EQ(change(word, 0, -1), MbarrierChange::kTooManyBytes);
}

}  // namespace
}  // namespace logpjit::runtime
