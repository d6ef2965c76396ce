// Threads as ranks on the CPU device: every operation over a whole group.
#include <gmock/gmock.h>

#include <mutex>
#include <thread>

#include "tests/conformance/shard_problem.hpp"

namespace logpjit::tests {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

Runtime& cpu() {
  static Runtime runtime([] {
    Options options = Options::from_environment();
    options.device = "cpu";
    return options;
  }());
  return runtime;
}

/// What each rank threw; empty where it did not.
using Messages = std::vector<std::string>;

/// Runs `work(rank, group)` on a thread for each rank.
template <typename Work>
Messages run_group(const VocabShards& shards,
                   const VocabParallelOptions& options, Work&& work,
                   double timeout_s = 60) {
  auto ends = make_threads_group(shards.ranks(), timeout_s);
  Messages messages(ends.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const std::unique_ptr<Collective> end = std::move(ends[rank]);
      try {
        VocabParallel group(cpu(), *end, shards, options);
        work(static_cast<int>(rank), group);
      } catch (const std::exception& error) {
        messages[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return messages;
}

template <typename Problem>
std::vector<RankResult> run_all(const Problem& problem,
                                const VocabShards& shards,
                                const VocabParallelOptions& options = {}) {
  std::vector<RankResult> results(static_cast<std::size_t>(shards.ranks()));
  const Messages messages =
      run_group(shards, options, [&](int rank, VocabParallel& group) {
        results[static_cast<std::size_t>(rank)] =
            run_rank(cpu(), group, problem);
      });
  EXPECT_THAT(messages, Each(""));
  return results;
}

/// Ways to cut 592 columns that need few kernels: even, uneven, empty shards.
std::vector<VocabShards> cuts() {
  const auto quarters = [](std::initializer_list<int> owners, int ranks) {
    std::vector<VocabRange> ranges(static_cast<std::size_t>(ranks));
    std::int64_t begin = 0;
    for (const int owner : owners) {
      ranges[static_cast<std::size_t>(owner)] = {begin, begin + 148};
      begin += 148;
    }
    return VocabShards(std::move(ranges));
  };
  return {VocabShards::even(592, 1),
          VocabShards::even(592, 2),
          VocabShards({{0, 0}, {0, 592}}),
          VocabShards({{0, 296}, {296, 444}, {444, 592}}),
          VocabShards::even(592, 4),
          VocabShards({{0, 148}, {148, 148}, {148, 444}, {444, 592}}),
          quarters({1, 7, 4, 3}, 8),
          quarters({0, 9, 10, 15}, 16)};
}

constexpr Terms kBoth = Terms::kLogp | Terms::kEntropy;

TEST(VocabParallel, RowOperations) {
  const auto both = random_problem(kBoth, DType::kBf16, 6, 592, 1);
  const auto several = random_problem(Terms::kLogp, DType::kFp32, 6, 592, 20);
  for (const VocabShards& shards : cuts()) {
    SCOPED_TRACE(shards.ranks());
    EXPECT_EQ(wrong_with(both, shards, run_all(both, shards)), "");
    EXPECT_EQ(wrong_with(several, shards, run_all(several, shards)), "");
  }
}

TEST(VocabParallel, ManyRanksThatAllOwnColumns) {
  const auto both = random_problem(kBoth, DType::kBf16, 6, 592, 1);
  const auto kl =
      random_kl_problem(KlDirection::kForward, DType::kBf16, 4, 592);
  for (const int ranks : {8, 16}) {
    SCOPED_TRACE(ranks);
    const VocabShards shards = VocabShards::even(592, ranks);
    EXPECT_EQ(wrong_with(both, shards, run_all(both, shards)), "");
    EXPECT_EQ(wrong_with(kl, shards, run_all(kl, shards)), "");
  }
}

TEST(VocabParallel, Divergences) {
  const auto forward =
      random_kl_problem(KlDirection::kForward, DType::kBf16, 4, 592);
  const auto reverse =
      random_kl_problem(KlDirection::kReverse, DType::kBf16, 4, 592);
  for (const VocabShards& shards : cuts()) {
    SCOPED_TRACE(shards.ranks());
    EXPECT_EQ(wrong_with(forward, shards, run_all(forward, shards)), "");
    EXPECT_EQ(wrong_with(reverse, shards, run_all(reverse, shards)), "");
  }
}

TEST(VocabParallel, EachOperationAlone) {
  const VocabShards shards = VocabShards::even(592, 2);
  for (const Terms terms :
       {Terms::kLogp, Terms::kEntropy, kBoth | Terms::kLse | Terms::kSquares}) {
    const auto problem = random_problem(terms, DType::kFp32, 6, 592, 1);
    EXPECT_EQ(wrong_with(problem, shards, run_all(problem, shards)), "");
  }
}

TEST(VocabParallel, SameBitsInTwentyRuns) {
  const VocabShards shards = cuts()[5];
  const auto problem = random_problem(kBoth, DType::kBf16, 6, 592, 1);
  const auto first = run_all(problem, shards);
  for (int run = 0; run < 20; ++run) {
    const auto again = run_all(problem, shards);
    for (std::size_t rank = 0; rank < first.size(); ++rank) {
      ASSERT_EQ(again[rank].gradient, first[rank].gradient);
      ASSERT_EQ(again[rank].logp, first[rank].logp);
      ASSERT_EQ(again[rank].entropy, first[rank].entropy);
      ASSERT_EQ(again[rank].sum, first[rank].sum);
    }
  }
}

TEST(VocabParallel, BlocksOfRowsChangeNoBit) {
  const VocabShards shards = cuts()[5];
  const auto problem = random_problem(Terms::kLogp, DType::kFp32, 11, 592, 20);
  const auto whole = run_all(problem, shards);
  const auto cut = run_all(problem, shards, {.block_rows = 4});
  EXPECT_EQ(wrong_with(problem, shards, cut), "");
  for (std::size_t rank = 0; rank < whole.size(); ++rank) {
    EXPECT_EQ(cut[rank].logp, whole[rank].logp);
    EXPECT_EQ(cut[rank].gradient, whole[rank].gradient);
  }
}

TEST(VocabParallel, SegmentsGiveTheWholeRowsBits) {
  constexpr std::int64_t kVocab = 45000;
  const auto problem = random_problem(Terms::kLogp | Terms::kEntropy,
                                      DType::kBf16, 3, kVocab, 1);
  const RankResult whole = run_whole(cpu(), problem);
  for (const int ranks : {1, 2, 8}) {
    SCOPED_TRACE(ranks);
    const VocabShards shards = VocabShards::at_segments(kVocab, ranks);
    const auto results = run_all(
        problem, shards, {.order = MergeOrder::kSegments, .block_rows = 1});
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(same_bits(whole, results[static_cast<std::size_t>(rank)],
                            shards, rank, 3));
    }
  }
}

/// Rank 1's call differs: every rank hears of it, with these words.
void expect_disagreement(const ShardProblem& usual, const ShardProblem& odd,
                         const std::string& what) {
  const VocabShards shards = VocabShards::even(592, 2);
  const Messages messages =
      run_group(shards, {}, [&](int rank, VocabParallel& group) {
        run_rank(cpu(), group, rank == 1 ? odd : usual);
      });
  EXPECT_THAT(messages, Each(AllOf(HasSubstr("rank 1 made another call"),
                                   HasSubstr(what))));
}

TEST(VocabParallelMisuse, CallsThatDifferAreNamedOnEveryRank) {
  const auto usual = random_problem(Terms::kLogp, DType::kFp32, 6, 592, 1);
  expect_disagreement(usual,
                      random_problem(Terms::kLogp, DType::kFp32, 5, 592, 1),
                      "the rows: 5 instead of 6");
  expect_disagreement(random_problem(Terms::kLogp, DType::kFp32, 6, 592, 20),
                      random_problem(Terms::kLogp, DType::kFp32, 6, 592, 17),
                      "the ids per row: 17 instead of 20");
  expect_disagreement(usual,
                      random_problem(Terms::kLogp, DType::kBf16, 6, 592, 1),
                      "the logits' dtype: bf16 instead of fp32");
  expect_disagreement(usual,
                      random_problem(Terms::kEntropy, DType::kFp32, 6, 592, 1),
                      "the operation: entropy instead of logp");
  expect_disagreement(
      usual, random_problem(Terms::kLogp, DType::kFp32, 6, 592, 1, 0.7f),
      "the temperature");
}

TEST(VocabParallelMisuse, DifferentBoundsAreNoticed) {
  const auto problem = random_problem(Terms::kLogp, DType::kFp32, 6, 592, 1);
  auto ends = make_threads_group(2);
  Messages messages(2);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        VocabParallel group(cpu(), *ends[rank],
                            rank == 0 ? VocabShards::even(592, 2)
                                      : VocabShards({{0, 444}, {444, 592}}));
        run_rank(cpu(), group, problem);
      } catch (const std::exception& error) {
        messages[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(messages, Each(HasSubstr("the shards' bounds")));
}

TEST(VocabParallelMisuse, ADigestNoticesWhatIsNotCompared) {
  const auto usual = random_problem(Terms::kLogp, DType::kFp32, 6, 592, 1);
  const auto odd = random_problem(Terms::kLogp, DType::kBf16, 6, 592, 1);
  const Messages messages =
      run_group(VocabShards::even(592, 2), {.compare_calls = false},
                [&](int rank, VocabParallel& group) {
                  run_rank(cpu(), group, rank == 1 ? odd : usual);
                });
  EXPECT_THAT(messages[0], HasSubstr("rank 1 made another call than rank 0"));
  EXPECT_THAT(messages[1], HasSubstr("rank 0 made another call than rank 1"));
}

TEST(VocabParallelMisuse, RecordsOfAnotherSizeAreNotMixed) {
  const auto usual = random_problem(Terms::kLogp, DType::kFp32, 6, 592, 1);
  const auto odd = random_problem(Terms::kLogp, DType::kFp32, 5, 592, 1);
  const Messages messages =
      run_group(VocabShards::even(592, 2), {.compare_calls = false},
                [&](int rank, VocabParallel& group) {
                  run_rank(cpu(), group, rank == 1 ? odd : usual);
                });
  EXPECT_THAT(messages, Each(HasSubstr("not in the same call")));
}

TEST(VocabParallelMisuse, ARefusalOnOneRankIsHeardOnAll) {
  const HostMatrix whole = random_matrix(DType::kBf16, 6, 592, 1, 1);
  const Messages messages =
      run_group(VocabShards::even(592, 4), {}, [&](int rank, VocabParallel& g) {
        runtime::Device& device = cpu().engine().device();
        const auto memory = device.allocate(1 << 20);
        const auto logits = send(device, columns_of(whole, g.shards(), rank));
        const auto out = poisoned_values(device, 6, 1);
        RowForward call{.logits = logits.view, .entropy = out.entropy.view};
        if (rank == 2) call.transform.temperature = -1;
        g.forward(call, {memory->data(), memory->size()});
      });
  EXPECT_THAT(messages,
              Each(HasSubstr("temperature: -1 is not finite and above 0")));
  EXPECT_THAT(messages[0], HasSubstr("rank 2 refused the call"));
}

TEST(VocabParallelMisuse, AGroupOfAnotherSize) {
  auto ends = make_threads_group(2);
  EXPECT_THROW(VocabParallel(cpu(), *ends[0], VocabShards::even(592, 3)),
               Error);
}

TEST(VocabParallelMisuse, NobodyWaitsForARankThatLeft) {
  const auto problem = random_problem(Terms::kLogp, DType::kFp32, 6, 592, 1);
  const Messages messages =
      run_group(VocabShards::even(592, 4), {}, [&](int rank, VocabParallel& g) {
        if (rank == 3) throw std::runtime_error("of its own");
        run_rank(cpu(), g, problem);
      });
  EXPECT_EQ(messages[3], "of its own");
  EXPECT_THAT(Messages(messages.begin(), messages.end() - 1),
              Each(HasSubstr("rank 3 has left the group")));
}

TEST(VocabParallelMisuse, ARankThatNeverComesIsATimeOut) {
  constexpr double kTimeout = 0.5;
  const auto problem = random_problem(Terms::kLogp, DType::kFp32, 6, 592, 1);
  const VocabShards shards = VocabShards::even(592, 4);
  run_all(problem, shards);  // what is compiled meanwhile does not count
  for (const bool compare : {true, false}) {
    const Messages messages = run_group(
        shards, {.compare_calls = compare, .timeout_s = kTimeout},
        [&](int rank, VocabParallel& group) {
          if (rank == 2) {
            std::this_thread::sleep_for(
                std::chrono::duration<double>(4 * kTimeout));
            return;
          }
          try {
            run_rank(cpu(), group, problem);
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kTimeout) << rank;
            throw;
          }
        },
        kTimeout);
    EXPECT_EQ(messages[2], "");
    for (const std::size_t rank : {0, 1, 3}) {
      EXPECT_THAT(messages[rank], HasSubstr("waited 0.5 s")) << rank;
    }
  }
}

TEST(VocabParallelMisuse, TooSmallAWorkspaceIsRefusedOnAllRanks) {
  const Messages messages =
      run_group(VocabShards::even(592, 2), {}, [&](int rank, VocabParallel& g) {
        runtime::Device& device = cpu().engine().device();
        const auto matrix =
            send(device, random_matrix(DType::kFp32, 4, 296, 1, 1));
        const auto out = poisoned_values(device, 4, 1);
        const RowForward call{.logits = matrix.view,
                              .entropy = out.entropy.view};
        const auto scratch = device.allocate(g.workspace_bytes(call));
        g.forward(call, {scratch->data(), rank == 0 ? 16 : scratch->size()});
      });
  EXPECT_THAT(messages, Each(HasSubstr("workspace: 16 bytes")));
}

}  // namespace
}  // namespace logpjit::tests
