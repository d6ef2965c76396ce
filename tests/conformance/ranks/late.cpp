// The last rank stays away: the others hear of it in time, by a typed error.
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "logpjit/error.hpp"
#include "tests/conformance/ranks/ranks.hpp"
#include "tests/conformance/shard_problem.hpp"

namespace logpjit::tests {
namespace {

using Json = nlohmann::json;
using Seconds = std::chrono::duration<double>;

constexpr double kTimeout = 3;

/// What the rank was told, and how long that took.
Json wait_for_nobody(Rank& rank, VocabParallel& group,
                     const ShardProblem& problem) {
  const auto begin = std::chrono::steady_clock::now();
  Json made{{"name", "a rank that never comes"}, {"passed", false}};
  try {
    run_rank(rank.runtime(), group, problem);
    made["wrong"] = "no error";
  } catch (const Error& error) {
    made["passed"] = error.code() == ErrorCode::kTimeout;
    made["said"] = error.message();
  }
  const double waited =
      Seconds(std::chrono::steady_clock::now() - begin).count();
  made["seconds"] = waited;
  if (waited > 3 * kTimeout) made["passed"] = false;
  return made;
}

}  // namespace

std::string run_late(Rank& rank) {
  constexpr std::int64_t kVocab = 20000;
  const auto problem =
      random_problem(Terms::kLogp, DType::kBf16, 17, kVocab, 1);
  const int ranks = rank.flags().ranks;
  Json all = Json::array();
  VocabParallel group(rank.runtime(), rank.collective(),
                      VocabShards::even(kVocab, ranks),
                      {.timeout_s = kTimeout});
  run_rank(rank.runtime(), group, problem);  // compiled, and connected
  if (rank.flags().rank < ranks - 1) {
    all.push_back(wait_for_nobody(rank, group, problem));
  } else {
    std::this_thread::sleep_for(Seconds(4 * kTimeout));
  }
  return all.dump();
}

}  // namespace logpjit::tests
