// The tuner's own figures on a GPU: regret against a longer, exhaustive repeat,
// and how often repeated runs disagree. Printed; regret is judged.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>

#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tuning/model_presets.hpp"
#include "tuning/tuner.hpp"

namespace logpjit::tuning {
namespace {

constexpr int kRepeats = 10;
constexpr double kMostRegret = 0.02;
constexpr std::int64_t kVocab = 151936;

class TunerAcceptance : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.cache_directory = folder_.path() / "cache";
    try {
      runtime_ = std::make_unique<Runtime>(options_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      GTEST_SKIP() << "no GPU: " << error.message();
    }
  }

  /// All, or the first few as LOGPJIT_ACCEPTANCE_KEYS says.
  static std::vector<runtime::TunedShape> keys() {
    ShapeRequest request{.ops = {},
                         .dtypes = {DType::kBf16},
                         .vocabs = {kVocab},
                         .rows = {8192, 64}};
    for (const char* op : {"logp", "kl_backward", "logp_with_grad",
                           "logp+entropy", "kl", "logp_backward"}) {
      request.ops.push_back(*parse_timed_op(op));
    }
    auto shapes = make_shapes(request);
    if (const char* count = std::getenv("LOGPJIT_ACCEPTANCE_KEYS")) {
      shapes.resize(
          std::min(shapes.size(), static_cast<std::size_t>(std::atoi(count))));
    }
    return shapes;
  }

  KeyResult tune(const runtime::TunedShape& shape, const TuneOptions& options) {
    cache::ConfigStore store(std::nullopt, cache::Role::kUser, {});
    return Tuner(*runtime_, store, options).run({&shape, 1}).keys.front();
  }

  const testing::TemporaryDirectory folder_;
  Options options_ = Options::from_environment();
  std::unique_ptr<Runtime> runtime_;
};

double time_of(const KeyResult& key, const LaunchConfig& config) {
  for (const Candidate& candidate : key.candidates) {
    if (candidate.config == config && candidate.timing) {
      return candidate.timing->median_ms;
    }
  }
  return 0;
}

TEST_F(TunerAcceptance, RegretAndFlips) {
  TuneOptions usual = TuneOptions::for_device(runtime_->device());
  usual.budget_s = 30;
  TuneOptions long_run = usual;
  long_run.measure.rounds *= 5;
  long_run.first_candidates = 80;
  long_run.stop_at = 2;
  int flips = 0;
  double worst = 0;
  for (const runtime::TunedShape& shape : keys()) {
    const auto begin = std::chrono::steady_clock::now();
    const KeyResult cold = tune(shape, usual);
    const double cold_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    if (!cold.selection) {
      fmt::print("{:22} n={:5} {}\n", shape.spec.op(), shape.rows, cold.reason);
      continue;
    }
    std::set<std::string> winners{cold.winner.text()};
    double warm_s = 0;
    for (int repeat = 1; repeat < kRepeats; ++repeat) {
      const KeyResult again = tune(shape, usual);
      winners.insert(again.winner.text());
      warm_s = again.times.total / 1000;
    }
    flips += static_cast<int>(winners.size()) - 1;
    const KeyResult all = tune(shape, long_run);
    double best = 0;
    for (const Candidate& candidate : all.candidates) {
      if (candidate.timing &&
          (best == 0 || candidate.timing->median_ms < best)) {
        best = candidate.timing->median_ms;
      }
    }
    const double chosen = time_of(all, cold.winner);
    const double regret = best > 0 && chosen > 0 ? chosen / best - 1 : 0;
    worst = std::max(worst, regret);
    fmt::print(
        "{:22} n={:5} {:9.4f} ms floor x{:.3f} default {:+.2f} % regret {:.2f} "
        "% winners {} of {} candidates {} of {} cold {:.2f} s warm {:.2f} s "
        "{}\n",
        shape.spec.op(), shape.rows, chosen,
        all.floor ? chosen / all.floor->median_ms : 0,
        100 * (time_of(all, all.candidates.front().config) / chosen - 1),
        100 * regret, winners.size(), kRepeats, cold.candidates.size(),
        all.candidates.size(), cold_s, warm_s, cold.winner.text());
  }
  fmt::print("worst regret {:.2f} %, flips {}\n", 100 * worst, flips);
  EXPECT_LE(worst, kMostRegret + 0.01);
}

}  // namespace
}  // namespace logpjit::tuning
