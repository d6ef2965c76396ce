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
