// The tuner finding, storing and giving up.
#include "tests/tuning/tuner_fixture.hpp"

namespace logpjit::tuning {
namespace {

TEST_F(TunerOnNullDevice, FastestIsFoundAndStored) {
  const TuneResult result = run();
  ASSERT_EQ(result.keys.size(), 1u);
  const KeyResult& key = result.keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  EXPECT_EQ(key.winner.at("block"), fast_);
  EXPECT_NEAR(key.winner_ms, 0.5, 1e-9);
  EXPECT_EQ(key.candidates.front().config,
            default_config(shape_, NullDevice().device_info));
  ASSERT_TRUE(key.accuracy);
  EXPECT_EQ(key.accuracy->misplaced(), 0);
  EXPECT_EQ(key.bytes, kRows * kVocab * 2);
  EXPECT_GT(key.floor.value().median_ms, 0);
  EXPECT_GT(statuses(key)["slow"], 0);
  EXPECT_EQ(compiles_,
            static_cast<int>(key.candidates.size()) + 3);  // the floors

  Runtime runtime(make_engine());
  EXPECT_EQ(runtime.kernel(shape_.spec).config(kRows), key.winner);
  EXPECT_EQ(runtime.kernel(shape_.spec).config_source(kRows),
            ConfigSource::kExact);
}

TEST_F(TunerOnNullDevice, SecondRunTakesWhatIsStored) {
  run();
  const TuneResult again = run();
  EXPECT_EQ(again.keys.front().status, KeyStatus::kStored);
  EXPECT_EQ(again.keys.front().winner.at("block"), fast_);
  EXPECT_TRUE(again.keys.front().winner_cached);
  EXPECT_EQ(compiles_, 0);
  tune_.force = true;
  EXPECT_EQ(run().keys.front().status, KeyStatus::kTuned);
}

TEST_F(TunerOnNullDevice, OtherTemplatesAreTunedAnew) {
  run();
  const auto file = *options_.cache_directory / "configs.jsonl";
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::string line = text.str();
  const auto at = line.find("\"templates\":\"");
  ASSERT_NE(at, std::string::npos);
  line.replace(at + 13, 4, "0000");
  std::ofstream(file) << line;
  EXPECT_EQ(run().keys.front().status, KeyStatus::kTuned);
}

TEST_F(TunerOnNullDevice, DefaultStaysWhenNothingIsFaster) {
  block_ms_ = {{128, 1.0}, {256, 0.99}, {512, 1.0}, {1024, 1.0}};
  const KeyResult key = run().keys.front();
  EXPECT_EQ(key.winner, key.candidates.front().config);
}

TEST_F(TunerOnNullDevice, HopelessCandidatesGetOneSample) {
  for (auto& [block, ms] : block_ms_) {
    if (ms > 1) ms = 1000;
  }
  const KeyResult key = run().keys.front();
  for (const Candidate& candidate : key.candidates) {
    if (!candidate.timing || candidate.timing->median_ms < 100) {
      continue;
    }
    EXPECT_EQ(candidate.timing->rounds_ms.size(), 1u);
  }
  EXPECT_GT(statuses(key)["slow"], 0);
}

/// The more samples there are, the less is needed to give one up; those near
/// the best and the default never are.
TEST_F(TunerOnNullDevice, CandidatesBehindGetFewerSamples) {
  const int usual =
      default_config(shape_, NullDevice().device_info).at("block");
  const double behind[] = {1.25, 1.12, 1.05};
  std::map<int, double> ratio{{usual, 1.25}, {fast_, 1}};
  std::size_t next = 0;
  for (auto& [block, ms] : block_ms_) {
    if (!ratio.contains(block)) ratio[block] = behind[next++ % 3];
    ms = ratio[block];
  }
  tune_.measure.rounds = 7;
  tune_.enough_ms = 1e9;
  tune_.second_candidates = 0;
  const KeyResult key = run().keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  std::set<double> seen;
  for (const Candidate& candidate : key.candidates) {
    const auto block = candidate.config.find("block");
    if (!block) continue;  // a kernel of one block size
    const double times = ratio.at(static_cast<int>(*block));
    const std::size_t samples = candidate.timing.value().rounds_ms.size();
    SCOPED_TRACE(fmt::format("{} times the best, {}", times, samples));
    if (&candidate == &key.candidates.front() || times <= 1.05) {
      EXPECT_EQ(candidate.status, CandidateStatus::kMeasured);
      EXPECT_EQ(samples, 7u);
      continue;
    }
    EXPECT_EQ(candidate.status, CandidateStatus::kSlow);
    EXPECT_EQ(samples, times == 1.25 ? 2u : 3u);
    seen.insert(times);
  }
  EXPECT_EQ(seen, (std::set<double>{1.12, 1.25}));
}

/// Four kinds of candidates, two of them 1 % apart, with noise.
TEST_F(TunerOnNullDevice, NoiseNeitherFlipsTheWinnerNorCostsTwoPercent) {
  int next = 0;
  const double ms_of[] = {1.01, 1.08, 1.15};
  for (auto& [block, ms] : block_ms_) {
    ms = block == fast_ ? 1 : ms_of[next++ % 3];
  }
  const auto right = block_ms_;
  std::mt19937 random(5);
  std::normal_distribution<double> noise(1, 0.005);
  on_launch_ = [&](const NullDevice::Launch&) {
    for (auto& [block, ms] : block_ms_) ms = right.at(block) * noise(random);
  };
  tune_.force = true;
  tune_.measure.rounds = 7;
  std::set<std::string> winners;
  for (int repeat = 0; repeat < 10; ++repeat) {
    const KeyResult key = run().keys.front();
    ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
    winners.insert(key.winner.text());
    EXPECT_LE(right.at(key.winner.at("block")), 1.02);
  }
  EXPECT_EQ(winners.size(), 1u);
}

TEST_F(TunerOnNullDevice, KeysWhoseImagesAreCachedHaveTheirOwnTime) {
  tune_.force = true;
  tune_.least_samples = 2;
  tune_.measure.rounds = 5;
  tune_.enough_ms = 1e9;
  tune_.cached_key_s = 0;
  const KeyResult cold = run().keys.front();
  const KeyResult cached = run().keys.front();
  ASSERT_EQ(cold.status, KeyStatus::kTuned) << cold.reason;
  ASSERT_EQ(cached.status, KeyStatus::kTuned) << cached.reason;
  EXPECT_EQ(compiles_, 0);
  EXPECT_GT(cold.candidates.size(), tune_.first_candidates);
  EXPECT_EQ(cold.candidates.front().timing->rounds_ms.size(), 2 * 5u);
  EXPECT_EQ(cached.candidates.size(), tune_.first_candidates);
  EXPECT_EQ(cached.candidates.front().timing->rounds_ms.size(), 2u);
  EXPECT_EQ(cold.winner.at("block"), fast_);
  EXPECT_EQ(cached.winner.at("block"), fast_);
  tune_.cached_key_s = 1e9;
  const KeyResult unhurried = run().keys.front();
  EXPECT_EQ(unhurried.candidates.size(), cold.candidates.size());
  tune_.cached_key_s = 0;
  tune_.key_s = 0;
  options_.cache_directory = folder_.path() / "another";
  EXPECT_EQ(run().keys.front().candidates.size(), tune_.first_candidates);
}

TEST_F(TunerOnNullDevice, NoBuildIsBegunThatWouldEndTooLate) {
  using std::chrono_literals::operator""ms;
  tune_.compile_threads = 64;
  // The default is built ahead; the next build is long.
  std::atomic<int> builds = 0;
  on_compile_ = [&](const generator::Source& source, const std::string&) {
    if (source.name_expression.find("row_statistics") == std::string::npos) {
      return;
    }
    if (builds++ == 1) std::this_thread::sleep_for(300ms);
  };
  const KeyResult unhurried = run().keys.front();
  EXPECT_GT(unhurried.candidates.size(), tune_.first_candidates);
  tune_.force = true;
  tune_.key_s = 0.55;  // less than twice the longest build
  options_.cache_directory = folder_.path() / "another";
  builds = 0;
  const KeyResult hurried = run().keys.front();
  ASSERT_EQ(hurried.status, KeyStatus::kTuned) << hurried.reason;
  EXPECT_EQ(hurried.candidates.size(), tune_.first_candidates);
}

TEST_F(TunerOnNullDevice, NeighboursThatAreNotCachedAreTriedAllTheSame) {
  tune_.force = true;
  tune_.cached_key_s = 0;
  const std::size_t wanted = std::exchange(tune_.second_candidates, 0);
  const KeyResult first = run().keys.front();
  tune_.second_candidates = wanted;
  const KeyResult second = run().keys.front();
  ASSERT_EQ(second.status, KeyStatus::kTuned) << second.reason;
  EXPECT_GT(second.candidates.size(), first.candidates.size());
  EXPECT_EQ(compiles_, static_cast<int>(second.candidates.size() -
                                        first.candidates.size()));
}

/// Two stages of rounds, one of the floor.
TEST_F(TunerOnNullDevice, FloorsAreMeasuredAsOftenAsThereAreRounds) {
  tune_.measure.rounds = 4;
  tune_.enough_ms = 1e9;
  const KeyResult key = run().keys.front();
  EXPECT_EQ(key.candidates.front().timing.value().rounds_ms.size(), 2 * 4u);
  EXPECT_EQ(key.floor.value().rounds_ms.size(), 4u);
  EXPECT_EQ(key.copy.value().rounds_ms.size(), 4u);
}

TEST_F(TunerOnNullDevice, CandidatesWhoseFirstRunIsLongAreNotMeasured) {
  const int slow = fast_;
  on_launch_ = [slow](const NullDevice::Launch& launch) {
    if (!statistics_arguments(launch)) return;
    const bool is_slow = static_cast<int>(launch.shape.block) == slow;
    std::this_thread::sleep_for(std::chrono::milliseconds(is_slow ? 40 : 2));
  };
  const KeyResult key = run().keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  EXPECT_NE(key.winner.at("block"), slow);
  int given_up = 0;
  for (const Candidate& candidate : key.candidates) {
    if (candidate.config.find("block") != slow) continue;
    EXPECT_EQ(candidate.status, CandidateStatus::kSlow);
    EXPECT_FALSE(candidate.timing);
    EXPECT_THAT(candidate.reason, HasSubstr("first run"));
    ++given_up;
  }
  EXPECT_GT(given_up, 0);
}

TEST_F(TunerOnNullDevice, RoundsEndOnceEnoughWasMeasured) {
  tune_.measure.rounds = 9;
  tune_.least_samples = 2;
  tune_.second_candidates = 0;
  const auto samples = [&](double enough_ms) {
    tune_.enough_ms = enough_ms;
    tune_.force = true;
    const KeyResult key = run().keys.front();
    EXPECT_EQ(key.status, KeyStatus::kTuned) << key.reason;
    return key.candidates.front().timing.value().rounds_ms.size();
  };
  EXPECT_EQ(samples(0), 2u);
  EXPECT_EQ(samples(1e9), 9u);
  tune_.second_candidates = 1;
  EXPECT_EQ(samples(0), 2 * 2u);
}

/// However many are built at once: what keys took adds up to the whole.
TEST_F(TunerOnNullDevice, DefaultsBuiltAheadCountByTheirShare) {
  using std::chrono_literals::operator""ms;
  std::vector<runtime::TunedShape> shapes{shape_, shape_, shape_};
  shapes[1].spec.vocab = kVocab / 2;
  shapes[2].spec.vocab = kVocab / 4;
  tune_.compile_threads = 8;
  std::atomic<int> defaults = 0;
  on_compile_ = [&](const generator::Source& source, const std::string&) {
    if (source.name_expression.find("row_statistics") == std::string::npos) {
      return;
    }
    if (defaults++ < 3) std::this_thread::sleep_for(200ms);
  };
  const TuneResult result = run(shapes);
  const KeyResult& key = result.keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  EXPECT_GE(key.candidates.front().compile_ms, 200);
  double all = 0;
  for (const KeyResult& each : result.keys) all += each.times.total / 1000;
  EXPECT_LE(all, result.seconds);
  EXPECT_GE(key.times.compile, 200.0 / 3 - 10);
}

TEST_F(TunerOnNullDevice, DefaultsAreBuiltAheadAndCountedOnce) {
  runtime::TunedShape other = shape_;
  other.spec.rows = RowMap::kIndexed;  // builds, and is then skipped
  std::size_t said = 0;
  tune_.on_defaults = [&](std::size_t count) { said = count; };
  const TuneResult result = run({shape_, other});
  EXPECT_EQ(said, 2u);
  const KeyResult& key = result.keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  EXPECT_EQ(compiles_, static_cast<int>(key.candidates.size()) + 1 + 3);
  EXPECT_FALSE(key.candidates.front().cache_hit);
  EXPECT_GT(key.candidates.front().compile_ms, 0);
  EXPECT_EQ(result.keys.back().status, KeyStatus::kSkipped);
  // To the next run it is in the cache.
  tune_.force = true;
  const TuneResult again = run({shape_, other});
  EXPECT_TRUE(again.keys.front().candidates.front().cache_hit);
  EXPECT_EQ(compiles_, 0);
}

}  // namespace
}  // namespace logpjit::tuning
