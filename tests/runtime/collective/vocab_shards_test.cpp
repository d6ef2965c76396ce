// Partitions of the vocabulary, and what is none.
#include "logpjit/vocab_shards.hpp"

#include <gmock/gmock.h>

#include "logpjit/error.hpp"

namespace logpjit {
namespace {

using testing::HasSubstr;

std::string refusal(std::vector<VocabRange> ranges, std::int64_t vocab = 0) {
  try {
    const VocabShards shards(std::move(ranges), vocab);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  return "accepted";
}

TEST(VocabShards, WhatIsNoPartitionIsNamed) {
  EXPECT_THAT(refusal({}), HasSubstr("there is no rank"));
  EXPECT_THAT(refusal({{0, 4}, {3, 8}}),
              HasSubstr("rank 1 has [3, 8), which overlaps rank 0's [0, 4)"));
  EXPECT_THAT(refusal({{0, 4}, {5, 8}}),
              HasSubstr("no rank has the columns [4, 5)"));
  EXPECT_THAT(refusal({{1, 4}}), HasSubstr("no rank has the columns [0, 1)"));
  EXPECT_THAT(refusal({{0, 4}, {8, 4}}), HasSubstr("rank 1 has [8, 4)"));
  EXPECT_THAT(refusal({{0, 0}, {7, 7}}), HasSubstr("no rank has a column"));
  EXPECT_THAT(refusal({{0, 4}}, 5), HasSubstr("vocab: 5"));
}

TEST(VocabShards, AnyOrderAndEmptyRanks) {
  const VocabShards shards({{4, 8}, {2, 2}, {0, 4}});
  EXPECT_EQ(shards.vocab(), 8);
  EXPECT_EQ(shards.live(1), VocabRange{});
  EXPECT_EQ(shards.live(0), (VocabRange{4, 8}));
}

TEST(VocabShards, PaddingDoesNotCount) {
  const VocabShards shards({{0, 4}, {4, 8}, {8, 12}}, 6);
  EXPECT_EQ(shards.vocab(), 6);
  EXPECT_EQ(shards.live(1), (VocabRange{4, 6}));
  EXPECT_EQ(shards.range(1), (VocabRange{4, 8}));
  EXPECT_EQ(shards.live(2), VocabRange{});
}

TEST(VocabShards, EvenOnes) {
  const VocabShards shards = VocabShards::even(17, 4);
  EXPECT_EQ(shards.range(0), (VocabRange{0, 5}));
  EXPECT_EQ(shards.range(3), (VocabRange{13, 17}));
}

TEST(VocabShards, SegmentsOfALargeVocabulary) {
  EXPECT_EQ(VocabShards::segment_count(40960), 1);
  EXPECT_EQ(VocabShards::segment_count(151936), 4);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const VocabShards shards = VocabShards::at_segments(151936, ranks);
    EXPECT_TRUE(shards.at_segments());
    EXPECT_EQ(shards.vocab(), 151936);
  }
  EXPECT_EQ(VocabShards::at_segments(151936, 2).range(1),
            (VocabRange{81920, 151936}));
  EXPECT_EQ(VocabShards::at_segments(151936, 3).most_segments(), 2);
  EXPECT_FALSE(VocabShards::even(151936, 2).at_segments());
}

}  // namespace
}  // namespace logpjit
