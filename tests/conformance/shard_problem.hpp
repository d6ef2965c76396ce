// A problem over a whole vocabulary, run by ranks that hold some columns each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "logpjit/error.hpp"
#include "logpjit/vocab_parallel.hpp"
#include "tests/conformance/harness.hpp"

namespace logpjit::tests {

/// Row values and the gradient of their weighted sum.
struct ShardProblem {
  Terms terms = Terms::kLogp;
  HostMatrix logits;
  std::vector<std::int64_t> ids;
  std::int64_t ids_per_row = 1;
  float temperature = 1;
  std::vector<float> up_logp, up_entropy, up_lse, up_squares;
};
ShardProblem random_problem(Terms terms, DType dtype, std::int64_t rows,
                            std::int64_t vocab, std::int64_t ids_per_row,
                            float temperature = 1);

/// A divergence and the gradients of both sides.
struct KlProblem {
  KlDirection direction = KlDirection::kForward;
  HostMatrix student;
  HostMatrix teacher;
  std::vector<float> upstream;
};
KlProblem random_kl_problem(KlDirection direction, DType dtype,
                            std::int64_t rows, std::int64_t vocab);

/// What one rank got: fp32 bits of values, and its columns of the gradients.
struct RankResult {
  std::vector<float> logp, entropy, lse, squares, max, sum;
  std::vector<double> gradient;
  std::vector<float> kl, student_max, student_sum, teacher_max, teacher_sum;
  std::vector<double> student_gradient, teacher_gradient;
};

/// The columns of `whole` that the rank holds; padding is NaN.
HostMatrix columns_of(const HostMatrix& whole, const VocabShards& shards,
                      int rank);

/// Forward and backward of one rank, on `stream`.
RankResult run_rank(Runtime& runtime, VocabParallel& group,
                    const ShardProblem& problem, CUstream_st* stream = nullptr);
RankResult run_rank(Runtime& runtime, VocabParallel& group,
                    const KlProblem& problem, CUstream_st* stream = nullptr);

/// The same without a group: every rank's parts on one device, one by one.
std::vector<RankResult> run_by_hand(Runtime& runtime, const VocabShards& shards,
                                    const ShardProblem& problem,
                                    MergeOrder order = MergeOrder::kRanks);
std::vector<RankResult> run_by_hand(Runtime& runtime, const VocabShards& shards,
                                    const KlProblem& problem,
                                    MergeOrder order = MergeOrder::kRanks);

/// The unsharded operations.
RankResult run_whole(Runtime& runtime, const ShardProblem& problem);
RankResult run_whole(Runtime& runtime, const KlProblem& problem);

/// What one rank has wrong against the float64 reference of the whole
/// vocabulary, in words; empty when nothing.
std::string wrong_with(const ShardProblem& problem, const VocabShards& shards,
                       int rank, const RankResult& result);
std::string wrong_with(const KlProblem& problem, const VocabShards& shards,
                       int rank, const RankResult& result);
/// Of the bits of all values, which ranks share.
std::uint64_t digest_of_values(const RankResult& result);

/// One description of what differs from the float64 reference of the whole
/// vocabulary; empty when all ranks are right and hold the same bits.
std::string wrong_with(const ShardProblem& problem, const VocabShards& shards,
                       const std::vector<RankResult>& results);
std::string wrong_with(const KlProblem& problem, const VocabShards& shards,
                       const std::vector<RankResult>& results);

/// Whether values are the whole's, bit for bit, and gradients its columns.
bool same_bits(const RankResult& whole, const RankResult& part,
               const VocabShards& shards, int rank, std::int64_t rows);

}  // namespace logpjit::tests
