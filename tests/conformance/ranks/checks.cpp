// Correctness over a group: the float64 reference, equal bits on all ranks, and
// the unsharded operation's bits in segment mode.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/conformance/ranks/ranks.hpp"
#include "tests/conformance/shard_problem.hpp"

namespace logpjit::tests {
namespace {

using Json = nlohmann::json;

constexpr Terms kAllTerms =
    Terms::kLogp | Terms::kEntropy | Terms::kLse | Terms::kSquares;

struct Cut {
  const char* name;
  VocabShards shards;
};

/// Even, uneven, and with every second rank empty.
std::vector<Cut> cuts(std::int64_t vocab, int ranks) {
  std::vector<VocabRange> uneven;
  std::vector<VocabRange> empty;
  std::int64_t begin = 0;
  const std::int64_t step = vocab / (ranks + 1);
  for (int rank = 0; rank < ranks; ++rank) {
    const bool last = rank == ranks - 1;
    uneven.push_back({begin, last ? vocab : begin + step});
    begin += step;
  }
  const int full = (ranks + 1) / 2;
  begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool holds = rank % 2 == 0;
    const std::int64_t end = !holds                 ? begin
                             : rank / 2 == full - 1 ? vocab
                                                    : begin + vocab / full;
    empty.push_back({begin, end});
    begin = end;
  }
  return {{"even", VocabShards::even(vocab, ranks)},
          {"uneven", VocabShards(uneven)},
          {"empty", VocabShards(empty)}};
}

/// What all ranks say of one check.
Json verdict(Rank& rank, const std::string& name, const std::string& wrong,
             std::uint64_t digest) {
  const auto failures = rank.exchange(wrong.empty() ? 0 : 1);
  const auto digests = rank.exchange(digest);
  const bool right = std::ranges::count(failures, 1u) == 0;
  const bool same = std::ranges::count(digests, digests[0]) ==
                    static_cast<std::ptrdiff_t>(digests.size());
  Json made{{"name", name}, {"passed", right && same}, {"same_bits", same}};
  if (!wrong.empty()) made["wrong"] = wrong;
  return made;
}

template <typename Problem>
Json check(Rank& rank, const std::string& name, const Problem& problem,
           const VocabShards& shards) {
  VocabParallel group(rank.runtime(), rank.collective(), shards);
  const RankResult result = run_rank(rank.runtime(), group, problem);
  return verdict(rank, name,
                 wrong_with(problem, shards, rank.flags().rank, result),
                 digest_of_values(result));
}

/// `runs` forwards and backwards give one digest.
Json check_repeats(Rank& rank, const ShardProblem& problem,
                   const VocabShards& shards, int runs) {
  VocabParallel group(rank.runtime(), rank.collective(), shards);
  const RankResult first = run_rank(rank.runtime(), group, problem);
  std::string wrong;
  for (int run = 1; run < runs; ++run) {
    const RankResult again = run_rank(rank.runtime(), group, problem);
    if (digest_of_values(again) != digest_of_values(first) ||
        again.gradient != first.gradient) {
      wrong = "run " + std::to_string(run) + " has other bits";
    }
  }
  return verdict(rank, "20 runs", wrong, digest_of_values(first));
}

template <typename Problem>
Json check_segments(Rank& rank, const std::string& name, const Problem& problem,
                    std::int64_t rows) {
  const VocabShards shards =
      VocabShards::at_segments(rank.flags().vocab, rank.flags().ranks);
  VocabParallel group(rank.runtime(), rank.collective(), shards,
                      {.order = MergeOrder::kSegments});
  const RankResult result = run_rank(rank.runtime(), group, problem);
  const RankResult whole = run_whole(rank.runtime(), problem);
  const bool same = same_bits(whole, result, shards, rank.flags().rank, rows);
  return verdict(rank, name, same ? "" : "not the unsharded bits",
                 digest_of_values(result));
}

}  // namespace

std::string run_checks(Rank& rank) {
  Json all = Json::array();
  const std::int64_t columns = rank.flags().quick ? 592 : 20000;
  const auto rows = random_problem(kAllTerms, DType::kBf16, 17, columns, 1);
  const auto several =
      random_problem(Terms::kLogp, DType::kFp32, 17, columns, 40);
  const auto few = random_problem(Terms::kLogp | Terms::kEntropy, DType::kFp16,
                                  9, columns, 3);
  const auto forward =
      random_kl_problem(KlDirection::kForward, DType::kBf16, 9, columns);
  const auto reverse =
      random_kl_problem(KlDirection::kReverse, DType::kFp32, 9, columns);
  for (const Cut& cut : cuts(columns, rank.flags().ranks)) {
    const std::string tail = std::string(", ") + cut.name;
    if (rank.flags().quick) {
      all.push_back(check(rank, "logp, 40 ids" + tail, several, cut.shards));
      all.push_back(check(rank, "kl forward" + tail, forward, cut.shards));
      continue;
    }
    all.push_back(check(rank, "all terms" + tail, rows, cut.shards));
    all.push_back(check(rank, "logp, 40 ids" + tail, several, cut.shards));
    all.push_back(check(rank, "logp+entropy, 3 ids" + tail, few, cut.shards));
    all.push_back(check(rank, "kl forward" + tail, forward, cut.shards));
    all.push_back(check(rank, "kl reverse" + tail, reverse, cut.shards));
  }
  if (rank.flags().quick) return all.dump();
  all.push_back(check_repeats(
      rank, rows, VocabShards::even(columns, rank.flags().ranks), 20));
  const std::int64_t vocab = rank.flags().vocab;
  all.push_back(check_segments(
      rank, "segments: logp+entropy",
      random_problem(Terms::kLogp | Terms::kEntropy, DType::kBf16, 9, vocab, 1),
      9));
  all.push_back(check_segments(
      rank, "segments: kl",
      random_kl_problem(KlDirection::kForward, DType::kBf16, 5, vocab), 5));
  return all.dump();
}

}  // namespace logpjit::tests
