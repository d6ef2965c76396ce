// The tuner's own figures on a GPU, for twelve keys: regret against an
// exhaustive repeat with five times the rounds, the winner against the default,
// and winners that differ between repeats. Judged; how long it took is printed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <string>

#include "logpjit/error.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tuning/model_presets.hpp"
#include "tuning/tuner.hpp"

namespace logpjit::tuning {
namespace {

constexpr int kRepeats = 10;
constexpr int kTimesTheRounds = 5;
constexpr double kMostRegret = 0.02;
constexpr std::int64_t kVocab = 151936;
/// Too far behind to be what regret is measured against.
constexpr double kFarBehind = 1.05;

/// One runtime for all, so that each image is compiled once.
struct Bench {
  testing::TemporaryDirectory folder;
  std::unique_ptr<Runtime> runtime;
  std::string why_not;

  Bench() {
    Options options = Options::from_environment();
    options.device = "cuda";
    options.cache_directory = folder.path() / "cache";
    try {
      runtime = std::make_unique<Runtime>(options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      why_not = error.message();
    }
  }
};

std::vector<runtime::TunedShape> keys() {
  ShapeRequest request{.ops = {},
                       .dtypes = {DType::kBf16},
                       .vocabs = {kVocab},
                       .rows = {8192, 64}};
  for (const char* op : {"logp", "logp_backward", "logp_with_grad",
                         "logp+entropy", "kl", "kl_backward"}) {
    request.ops.push_back(*parse_timed_op(op));
  }
  return make_shapes(request);
}

std::string test_name(const ::testing::TestParamInfo<runtime::TunedShape>& at) {
  std::string text = fmt::format("{}_n{}", at.param.spec.op(), at.param.rows);
  std::ranges::replace(text, '+', '_');
  return text;
}

class TunerAcceptance : public ::testing::TestWithParam<runtime::TunedShape> {
 protected:
  static void TearDownTestSuite() {
    if (keys_ > 0) {
      fmt::print(
          "{} keys: worst regret {:.2f} %, most against the default "
          "{:+.2f} %\n",
          keys_, 100 * worst_regret_, 100 * worst_loss_);
    }
    if (repeated_ > 0) {
      fmt::print(
          "{} keys tuned {} times each: {} flips\nlongest cold {}\nlongest "
          "with some images cached {}\nlongest cached {}\n",
          repeated_, kRepeats, flips_, text_of(cold_), text_of(some_),
          text_of(cached_));
    }
    bench_.reset();
  }

  void SetUp() override {
    if (!bench_) bench_ = std::make_unique<Bench>();
    if (!bench_->runtime) GTEST_SKIP() << "no GPU: " << bench_->why_not;
    usual_ = TuneOptions::for_device(bench_->runtime->device());
  }

  /// Nothing is remembered from one run to the next.
  KeyResult tune(const TuneOptions& options) {
    cache::ConfigStore store(std::nullopt, cache::Role::kUser, {});
    return Tuner(*bench_->runtime, store, options)
        .run({&GetParam(), 1})
        .keys.front();
  }

  static std::string text_of(const KeyTimes& times) {
    return fmt::format(
        "{:.2f} s: compile {:.2f}, verify {:.2f}, measure {:.2f}",
        times.total / 1000, times.compile / 1000, times.verify / 1000,
        times.measure / 1000);
  }

  /// Every configuration of the search space, five times the rounds.
  KeyResult tune_exhaustively() {
    TuneOptions options = usual_;
    options.first_candidates = std::numeric_limits<std::size_t>::max();
    options.measure.rounds *= kTimesTheRounds;
    options.enough_ms = std::numeric_limits<double>::infinity();
    options.key_s = options.cached_key_s = options.enough_ms;
    options.give_up = kFarBehind;
    options.stop_at = std::numeric_limits<double>::infinity();
    return tune(options);
  }

  static inline std::unique_ptr<Bench> bench_;
  static inline int keys_ = 0;
  static inline int repeated_ = 0;
  static inline int flips_ = 0;
  static inline double worst_regret_ = 0;
  static inline double worst_loss_ = -1;
  /// The longest, by how many of the images were cached.
  static inline KeyTimes cold_;
  static inline KeyTimes some_;
  static inline KeyTimes cached_;

  TuneOptions usual_;
};

INSTANTIATE_TEST_SUITE_P(gpu, TunerAcceptance, ::testing::ValuesIn(keys()),
                         test_name);

const Timing* time_of(const KeyResult& key, const LaunchConfig& config) {
  const auto found =
      std::ranges::find(key.candidates, config, &Candidate::config);
  return found != key.candidates.end() && found->timing ? &*found->timing
                                                        : nullptr;
}

const Candidate& best_of(const KeyResult& key) {
  return *std::ranges::min_element(
      key.candidates, {}, [](const Candidate& each) {
        return each.timing ? each.timing->median_ms
                           : std::numeric_limits<double>::infinity();
      });
}

std::ptrdiff_t count(const KeyResult& key, CandidateStatus status) {
  return std::ranges::count(key.candidates, status, &Candidate::status);
}

TEST_P(TunerAcceptance, RegretAgainstAnExhaustiveRepeat) {
  const KeyResult usual = tune(usual_);
  ASSERT_EQ(usual.status, KeyStatus::kTuned) << usual.reason;
  const KeyResult all = tune_exhaustively();
  ASSERT_TRUE(all.selection) << all.reason;
  EXPECT_EQ(count(all, CandidateStatus::kNotReached), 0);
  const Timing* chosen = time_of(all, usual.winner);
  const Timing* fallback = time_of(all, all.candidates.front().config);
  ASSERT_TRUE(chosen != nullptr && fallback != nullptr);
  const Candidate& best = best_of(all);
  const double regret = chosen->median_ms / best.timing->median_ms - 1;
  const double loss = chosen->median_ms / fallback->median_ms - 1;
  ++keys_;
  worst_regret_ = std::max(worst_regret_, regret);
  worst_loss_ = std::max(worst_loss_, loss);
  fmt::print(
      "{:15} n={:5} {:9.4f} ms, floor x{:.3f}, against the default {:+.2f} %, "
      "regret {:.2f} %; {} of {} candidates; {:.2f} s + {:.2f} s; {}, best "
      "{}\n",
      GetParam().spec.op(), GetParam().rows, chosen->median_ms,
      all.floor ? chosen->median_ms / all.floor->median_ms : 0, 100 * loss,
      100 * regret, usual.candidates.size(), all.candidates.size(),
      usual.times.total / 1000, all.times.total / 1000, usual.winner.text(),
      best.config.text());
  EXPECT_LE(regret, kMostRegret);
  // No slower than the default beyond noise.
  EXPECT_TRUE(loss <= 0 || is_tie(*chosen, *fallback, usual_.select.tie_band));
}

TEST_P(TunerAcceptance, RepeatsAgreeOnTheWinner) {
  std::map<std::string, int> winners;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const KeyResult key = tune(usual_);
    ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
    ++winners[key.winner.text()];
    const auto hits = std::ranges::count_if(
        key.candidates, [](const Candidate& each) { return each.cache_hit; });
    const auto built = std::ranges::count_if(
        key.candidates, [](const Candidate& each) { return each.is_built; });
    KeyTimes& longest = hits == 0 ? cold_ : hits < built ? some_ : cached_;
    if (key.times.total > longest.total) longest = key.times;
  }
  const int most = std::ranges::max_element(winners, {}, [](const auto& each) {
                     return each.second;
                   })->second;
  ++repeated_;
  flips_ += kRepeats - most;
  fmt::print("{:15} n={:5} {} of {} repeats flip", GetParam().spec.op(),
             GetParam().rows, kRepeats - most, kRepeats);
  for (const auto& [winner, times] : winners) {
    fmt::print("; {} x {}", times, winner);
  }
  fmt::print("\n");
  EXPECT_EQ(most, kRepeats);
}

}  // namespace
}  // namespace logpjit::tuning
