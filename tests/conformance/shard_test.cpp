// Hand-made shards on one device: every part called by itself.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "logpjit/error.hpp"
#include "tests/conformance/shard_problem.hpp"

namespace logpjit::tests {
namespace {

using testing::HasSubstr;

class Shards : public OnDevice {
 protected:
  template <typename Problem>
  void expect_right(const Problem& problem, const VocabShards& shards,
                    MergeOrder order = MergeOrder::kRanks) {
    const auto results = run_by_hand(runtime(), shards, problem, order);
    EXPECT_EQ(wrong_with(problem, shards, results), "");
  }
  /// Segment mode gives every rank the bits of the unsharded operation.
  template <typename Problem>
  void expect_whole_bits(const Problem& problem, const VocabShards& shards,
                         std::int64_t rows) {
    const RankResult whole = run_whole(runtime(), problem);
    const auto results =
        run_by_hand(runtime(), shards, problem, MergeOrder::kSegments);
    EXPECT_EQ(wrong_with(problem, shards, results), "");
    for (int rank = 0; rank < shards.ranks(); ++rank) {
      EXPECT_TRUE(same_bits(whole, results[static_cast<std::size_t>(rank)],
                            shards, rank, rows))
          << "rank " << rank << " of " << shards.ranks();
    }
  }
};
LOGPJIT_ON_DEVICES(Shards);

// Few distinct kernels: one vocabulary, widths 296 and 148, two sets of terms.
constexpr std::int64_t kVocab = 592;
constexpr Terms kBoth = Terms::kLogp | Terms::kEntropy;

TEST_P(Shards, UnevenAndOutOfOrder) {
  const VocabShards shards({{296, 592}, {0, 148}, {148, 148}, {148, 296}});
  expect_right(random_problem(kBoth, DType::kBf16, 9, kVocab, 1), shards);
  expect_right(
      random_kl_problem(KlDirection::kForward, DType::kBf16, 3, kVocab),
      shards);
}

TEST_P(Shards, SeveralIdsInRecordsAndBeside) {
  const VocabShards shards({{0, 296}, {296, 296}, {296, 444}, {444, 592}});
  for (const std::int64_t ids : {3, 16, 17, 40}) {
    SCOPED_TRACE(ids);
    expect_right(random_problem(Terms::kLogp, DType::kFp32, 8, kVocab, ids),
                 shards);
  }
}

TEST_P(Shards, PaddingInTheLastShardsIsNotRead) {
  const VocabShards shards({{0, 296}, {296, 600}, {600, 604}}, kVocab);
  expect_right(random_problem(kBoth, DType::kBf16, 5, kVocab, 1), shards);
  expect_right(
      random_kl_problem(KlDirection::kForward, DType::kBf16, 3, kVocab),
      shards);
}

TEST_P(Shards, MaskedShardAndMaskedRow) {
  const VocabShards shards = VocabShards::even(kVocab, 2);
  auto problem = random_problem(kBoth, DType::kBf16, 4, kVocab, 1);
  constexpr double kMasked = -std::numeric_limits<double>::infinity();
  for (std::int64_t j = 0; j < kVocab; ++j) {
    if (j < 296) problem.logits.at(0, j) = kMasked;
    if (j >= 296) problem.logits.at(1, j) = kMasked;
    problem.logits.at(2, j) = kMasked;
  }
  problem.ids[0] = 3;  // a masked column
  problem.ids[1] = 5;
  expect_right(problem, shards);
  auto kl = random_kl_problem(KlDirection::kReverse, DType::kBf16, 4, kVocab);
  for (std::int64_t j = 0; j < 296; ++j) {
    kl.student.at(0, j) = kMasked;
    kl.teacher.at(0, j) = kMasked;
    kl.student.at(1, 296 + j) = kMasked;
  }
  expect_right(kl, shards);
}

TEST_P(Shards, SegmentsGiveTheWholeRowsBits) {
  constexpr std::int64_t kLong = 45000;  // 6 tiles: 3 segments, a cut one
  const auto problem = random_problem(kBoth, DType::kBf16, 3, kLong, 1);
  const auto kl =
      random_kl_problem(KlDirection::kForward, DType::kBf16, 2, kLong);
  for (const int ranks : on_cpu() ? std::vector{2} : std::vector{1, 2, 3, 8}) {
    SCOPED_TRACE(ranks);
    const VocabShards shards = VocabShards::at_segments(kLong, ranks);
    expect_whole_bits(problem, shards, 3);
    expect_whole_bits(kl, shards, 2);
  }
}

TEST_P(Shards, OneRankIsTheWholeOperationInAnyOrder) {
  const auto problem = random_problem(kBoth, DType::kBf16, 9, kVocab, 1);
  const VocabShards one = VocabShards::even(kVocab, 1);
  const RankResult whole = run_whole(runtime(), problem);
  const auto ranks = run_by_hand(runtime(), one, problem);
  EXPECT_TRUE(same_bits(whole, ranks[0], one, 0, 9));
}

TEST_P(Shards, NoRows) {
  expect_right(random_problem(Terms::kLogp, DType::kFp32, 0, kVocab, 3),
               VocabShards({{0, 296}, {296, 296}, {296, 592}}));
}

/// Calls whose parts refuse: what is said, before anything is launched.
class ShardMisuse : public OnDevice {
 protected:
  std::string refusal(const ShardPlace& place,
                      const std::function<void(RowForward&)>& change) {
    const auto logits =
        send(device(), random_matrix(DType::kFp32, 4, 148, 1, 1));
    const auto out = poisoned_values(device(), 4, 1);
    RowForward call{.logits = logits.view, .entropy = out.entropy.view};
    change(call);
    try {
      shard_sizes(runtime(), call, place);
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  }
};
LOGPJIT_ON_DEVICES(ShardMisuse);

TEST_P(ShardMisuse, NamesTheArgument) {
  const VocabShards shards({{0, 148}, {148, 300}});
  const auto nothing = [](RowForward&) {};
  EXPECT_EQ(refusal({&shards, 0}, nothing), "accepted");
  EXPECT_THAT(refusal({}, nothing), HasSubstr("shards: are required"));
  EXPECT_THAT(refusal({&shards, 2}, nothing),
              HasSubstr("rank: 2 is not one of the 2 ranks"));
  EXPECT_THAT(
      refusal({&shards, 1}, nothing),
      HasSubstr("logits: row length 148 is not the 152 columns of rank 1"));
  EXPECT_THAT(refusal({&shards, 0}, [](RowForward& c) { c.vocab = 148; }),
              HasSubstr("vocab: 148 is not the 300 columns of the shards"));
  EXPECT_THAT(
      refusal({&shards, 0}, [](RowForward& c) { c.argmax = c.entropy; }),
      HasSubstr("argmax: is not available over shards"));
  EXPECT_THAT(refusal({&shards, 0, MergeOrder::kSegments}, nothing),
              HasSubstr("not cut at canonical segments"));
}

TEST_P(ShardMisuse, BuffersMustBeThere) {
  const VocabShards shards({{0, 148}});
  const auto logits = send(device(), random_matrix(DType::kFp32, 4, 148, 1, 1));
  const auto out = poisoned_values(device(), 4, 1);
  const RowForward call{.logits = logits.view, .entropy = out.entropy.view};
  EXPECT_THROW(shard_statistics(runtime(), call, {&shards, 0}, {}), Error);
  EXPECT_THROW(shard_merge(runtime(), call, {&shards, 0},
                           {.partials = out.max.view.data}),
               Error);
}

}  // namespace
}  // namespace logpjit::tests
