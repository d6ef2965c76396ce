// Comparing ranks with the float64 reference and with each other.
#include <cmath>
#include <cstring>
#include <span>

#include "cache/digest.hpp"
#include "tests/conformance/shard_problem.hpp"
#include "tuning/numeric.hpp"
#include "tuning/reference_kl.hpp"

namespace logpjit::tests {
namespace {

template <typename T>
std::vector<double> doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

/// The first disagreement, kept.
class Complaint {
 public:
  void near(double got, double want, double absolute, double relative,
            const std::string& what, std::int64_t row) {
    if (!text_.empty() || (std::isnan(want) && std::isnan(got))) return;
    if (got == want) return;
    const double limit = absolute + relative * std::abs(want);
    if (std::abs(got - want) <= limit) return;
    text_ = what + " of row " + std::to_string(row) + " is " +
            std::to_string(got) + ", not " + std::to_string(want) +
            " (off by " + std::to_string(std::abs(got - want) / limit) +
            " limits)";
  }
  void say(const std::string& what) {
    if (text_.empty()) text_ = what;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

bool same_values(const RankResult& a, const RankResult& b) {
  return equal(a.logp, b.logp) && equal(a.entropy, b.entropy) &&
         equal(a.lse, b.lse) && equal(a.squares, b.squares) &&
         equal(a.max, b.max) && equal(a.sum, b.sum) && equal(a.kl, b.kl) &&
         equal(a.student_max, b.student_max) &&
         equal(a.student_sum, b.student_sum) &&
         equal(a.teacher_max, b.teacher_max) &&
         equal(a.teacher_sum, b.teacher_sum);
}

/// A rank's columns of a row's gradient; padding must be zeros.
void check_columns(const std::vector<double>& got,
                   const std::vector<double>& right, const VocabShards& shards,
                   int rank, std::int64_t row, DType dtype, double scale,
                   Complaint& complaint) {
  const VocabRange range = shards.range(rank);
  for (std::int64_t j = range.begin; j < range.end; ++j) {
    const double value =
        got[static_cast<std::size_t>(row * range.width() + j - range.begin)];
    const bool counts = j < shards.vocab();
    const double want = counts ? right[static_cast<std::size_t>(j)] : 0;
    const double limit =
        counts ? 3e-6 * scale + tuning::spacing(want, dtype) : 0;
    complaint.near(value, want, limit, 0,
                   "rank " + std::to_string(rank) + "'s gradient in column " +
                       std::to_string(j),
                   row);
  }
}

double scale_of(const ShardProblem& problem, std::int64_t row) {
  double scale = 1;
  for (std::int64_t k = 0; k < problem.ids_per_row; ++k) {
    scale += std::abs(static_cast<double>(
        problem
            .up_logp[static_cast<std::size_t>(row * problem.ids_per_row + k)]));
  }
  return scale;
}

void check_values(const ShardProblem& problem, const RankResult& got,
                  const tuning::RowValues& want, std::int64_t row,
                  Complaint& complaint) {
  const auto at = static_cast<std::size_t>(row);
  const auto has_term = [&](Terms term) { return has(problem.terms, term); };
  for (std::size_t k = 0; has_term(Terms::kLogp) && k < want.logp.size(); ++k) {
    complaint.near(got.logp[at * want.logp.size() + k], want.logp[k], 2e-6,
                   4e-7, "logp", row);
  }
  if (has_term(Terms::kEntropy)) {
    complaint.near(got.entropy[at], want.entropy, 2e-6, 5e-7, "entropy", row);
  }
  if (has_term(Terms::kLse)) {
    complaint.near(got.lse[at], want.lse, 2e-6, 4e-7, "lse", row);
  }
  if (has_term(Terms::kSquares)) {
    complaint.near(got.squares[at], want.squares, 1e-9, 2e-6, "squares", row);
  }
}

}  // namespace

std::string wrong_with(const ShardProblem& problem, const VocabShards& shards,
                       int rank, const RankResult& result) {
  Complaint complaint;
  tuning::Problem reference = problem_of(problem.logits);
  tuning::set_ids(reference, problem.ids, problem.ids_per_row);
  reference.temperature = {static_cast<double>(problem.temperature)};
  tuning::Upstream upstream;
  const auto has_term = [&](Terms term) { return has(problem.terms, term); };
  if (has_term(Terms::kLogp)) upstream.logp = doubles(problem.up_logp);
  if (has_term(Terms::kEntropy)) upstream.entropy = doubles(problem.up_entropy);
  if (has_term(Terms::kLse)) upstream.lse = doubles(problem.up_lse);
  if (has_term(Terms::kSquares)) upstream.squares = doubles(problem.up_squares);
  for (std::int64_t row = 0; row < problem.logits.rows; ++row) {
    check_values(problem, result, tuning::reference_values(reference, row), row,
                 complaint);
    check_columns(result.gradient,
                  tuning::reference_gradient(reference, upstream, row), shards,
                  rank, row, problem.logits.dtype, scale_of(problem, row),
                  complaint);
  }
  return complaint.text();
}

std::string wrong_with(const KlProblem& problem, const VocabShards& shards,
                       int rank, const RankResult& result) {
  Complaint complaint;
  const tuning::Problem student = problem_of(problem.student);
  const tuning::Problem teacher = problem_of(problem.teacher);
  const bool forward = problem.direction == KlDirection::kForward;
  for (std::int64_t row = 0; row < problem.student.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const auto a = (forward ? teacher : student).distribution(row);
    const auto b = (forward ? student : teacher).distribution(row);
    complaint.near(result.kl[at], tuning::row_kl(a, b), 2e-6, 1e-6, "kl", row);
    const double upstream = static_cast<double>(problem.upstream[at]);
    const tuning::KlGradients right = tuning::row_kl_gradients(a, b, upstream);
    const double scale = 1 + std::abs(upstream);
    check_columns(result.student_gradient, forward ? right.b : right.a, shards,
                  rank, row, problem.student.dtype, scale, complaint);
    check_columns(result.teacher_gradient, forward ? right.a : right.b, shards,
                  rank, row, problem.teacher.dtype, scale, complaint);
  }
  return complaint.text();
}

std::uint64_t digest_of_values(const RankResult& result) {
  cache::DigestStream stream;
  for (const auto* values :
       {&result.logp, &result.entropy, &result.lse, &result.squares,
        &result.max, &result.sum, &result.kl, &result.student_max,
        &result.student_sum, &result.teacher_max, &result.teacher_sum}) {
    stream.add(std::as_bytes(std::span(*values)));
  }
  std::uint64_t word = 0;
  const cache::Digest digest = stream.value();
  std::memcpy(&word, digest.data(), sizeof word);
  return word;
}

namespace {

template <typename Problem>
std::string wrong_with_any(const Problem& problem, const VocabShards& shards,
                           const std::vector<RankResult>& results) {
  Complaint complaint;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    complaint.say(
        wrong_with(problem, shards, static_cast<int>(rank), results[rank]));
    if (!same_values(results[0], results[rank])) {
      complaint.say("rank " + std::to_string(rank) +
                    " has other bits than rank 0");
    }
  }
  return complaint.text();
}

}  // namespace

std::string wrong_with(const ShardProblem& problem, const VocabShards& shards,
                       const std::vector<RankResult>& results) {
  return wrong_with_any(problem, shards, results);
}
std::string wrong_with(const KlProblem& problem, const VocabShards& shards,
                       const std::vector<RankResult>& results) {
  return wrong_with_any(problem, shards, results);
}

bool same_bits(const RankResult& whole, const RankResult& part,
               const VocabShards& shards, int rank, std::int64_t rows) {
  if (!same_values(whole, part)) return false;
  const VocabRange range = shards.range(rank);
  const std::int64_t vocab = shards.vocab();
  const auto is_slice = [&](const std::vector<double>& all,
                            const std::vector<double>& own) {
    for (std::int64_t row = 0; row < rows && !all.empty(); ++row) {
      for (std::int64_t j = range.begin; j < range.end && j < vocab; ++j) {
        const double want = all[static_cast<std::size_t>(row * vocab + j)];
        const double got = own[static_cast<std::size_t>(row * range.width() +
                                                        j - range.begin)];
        if (std::memcmp(&want, &got, sizeof want) != 0) return false;
      }
    }
    return true;
  };
  return is_slice(whole.gradient, part.gradient) &&
         is_slice(whole.student_gradient, part.student_gradient) &&
         is_slice(whole.teacher_gradient, part.teacher_gradient);
}

}  // namespace logpjit::tests
