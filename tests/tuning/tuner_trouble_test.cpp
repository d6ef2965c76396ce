// The tuner among wrong results, lost devices and spent budgets.
#include "tests/tuning/tuner_fixture.hpp"

namespace logpjit::tuning {
namespace {

TEST_F(TunerOnNullDevice, WrongBitsNeverWin) {
  on_launch_ = [this](const NullDevice::Launch& launch) {
    const auto arguments = statistics_arguments(launch);
    if (!arguments || static_cast<int>(launch.shape.block) != fast_) return;
    arguments->sum[0] = 2;
  };
  const KeyResult key = run().keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  EXPECT_NE(key.winner.at("block"), fast_);
  EXPECT_GT(statuses(key)["wrong_bits"], 0);
}

TEST_F(TunerOnNullDevice, OutputsThatAreNotWrittenAreWrongBits) {
  // A kernel that does nothing leaves the poison.
  on_launch_ = [this](const NullDevice::Launch& launch) {
    const auto arguments = statistics_arguments(launch);
    if (!arguments || static_cast<int>(launch.shape.block) != fast_) return;
    std::memset(arguments->logp, kPoison, sizeof(float));
  };
  EXPECT_GT(statuses(run().keys.front())["wrong_bits"], 0);
}

TEST_F(TunerOnNullDevice, DefaultThatIsWrongFailsTheKey) {
  on_launch_ = [](const NullDevice::Launch& launch) {
    const auto arguments = statistics_arguments(launch);
    if (!arguments) return;
    arguments->logp[0] += 1;
  };
  const KeyResult key = run().keys.front();
  EXPECT_EQ(key.status, KeyStatus::kFailed);
  EXPECT_THAT(key.reason, HasSubstr("wrong"));
}

TEST_F(TunerOnNullDevice, CandidatesThatDoNotCompileSayWhy) {
  on_compile_ = [this](const generator::Source& source, const std::string&) {
    if (source.kernel == "row_statistics" &&
        source.config.find("block") == fast_) {
      throw Error(ErrorCode::kCompileFailed, "on purpose\nmore lines");
    }
  };
  const KeyResult key = run().keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  EXPECT_GT(statuses(key)["compile_failed"], 0);
  for (const Candidate& candidate : key.candidates) {
    if (candidate.status != CandidateStatus::kCompileFailed) continue;
    EXPECT_EQ(candidate.reason, "on purpose");
  }
}

TEST_F(TunerOnNullDevice, CompilesThatWereEndedAreNotReached) {
  bool with_default = false;
  on_compile_ = [&](const generator::Source& source, const std::string&) {
    if (!source.kernel.starts_with("row_statistics")) return;
    const bool is_default =
        source.config == default_config(shape_, device_->info());
    if (with_default || !is_default) {
      throw Error(ErrorCode::kTimeout, "on purpose");
    }
  };
  const KeyResult key = run().keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  for (std::size_t i = 1; i < key.candidates.size(); ++i) {
    EXPECT_EQ(key.candidates[i].status, CandidateStatus::kNotReached);
    EXPECT_EQ(key.candidates[i].reason, "on purpose");
  }
  with_default = true;
  options_.cache_directory = folder_.path() / "another";
  const KeyResult none = run().keys.front();
  EXPECT_EQ(none.status, KeyStatus::kSkipped);
  EXPECT_THAT(none.reason, HasSubstr("the budget was spent"));
}

TEST_F(TunerOnNullDevice, NoisyResultsAreReportedAndNotStored) {
  int turn = 0;
  block_ms_ = {};
  tune_.select.most_spread = 0.1;
  on_launch_ = [&](const NullDevice::Launch&) {
    for (const int block : {128, 256, 512, 1024}) {
      block_ms_[block] = 1 + turn % 7;
    }
    ++turn;
  };
  const KeyResult key = run().keys.front();
  EXPECT_EQ(key.status, KeyStatus::kUnstable);
  EXPECT_THAT(key.reason, HasSubstr("shared or throttled"));
  EXPECT_EQ(run().keys.front().status, KeyStatus::kUnstable);
}

/// At the default's runs, a candidate's, while a graph is recorded, and while
/// it is replayed.
/// Below its clock the device takes longer, and candidates that are really the
/// best look like the worst.
TEST_F(TunerOnNullDevice, RoundsOfASlowedDeviceDecideNothing) {
  const auto quick = block_ms_;
  int spoilt = 0;
  on_clock_ = [&] {
    const bool is_slow = ++spoilt <= 2;
    if (!is_slow) block_ms_ = quick;
    return runtime::ClockState{.share = is_slow ? 0.6 : 1,
                               .held_by = is_slow ? "the power cap" : ""};
  };
  block_ms_[fast_] = 20;
  const KeyResult key = run().keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  EXPECT_EQ(key.winner.at("block"), fast_);
  EXPECT_NEAR(key.winner_ms, quick.at(fast_), 1e-9);
  EXPECT_EQ(key.reason,
            "the power cap held the clock at 60 %: 2 rounds were repeated");
}

TEST_F(TunerOnNullDevice, ADeviceThatStaysSlowIsTunedAllTheSame) {
  on_clock_ = [] {
    return runtime::ClockState{.share = 0.7, .held_by = "the temperature"};
  };
  const KeyResult key = run().keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  EXPECT_EQ(key.winner.at("block"), fast_);
  EXPECT_THAT(key.reason, HasSubstr("the temperature held the clock at 70 %"));
  EXPECT_THAT(key.reason, HasSubstr("3 rounds were repeated"));
  EXPECT_THAT(key.reason, HasSubstr("kept"));
}

TEST_F(TunerOnNullDevice, LostDeviceEndsTheRunAndKeepsWhatWasStored) {
  runtime::TunedShape second = shape_;
  second.rows = 8;
  runtime::TunedShape third = shape_;
  third.rows = 16;
  for (const int at : {1, 2, 3, 12, 40, 80}) {
    SCOPED_TRACE(at);
    options_.cache_directory = folder_.path() / std::to_string(at);
    int launches = 0;
    on_launch_ = [&](const NullDevice::Launch& launch) {
      const auto arguments = statistics_arguments(launch);
      if (!arguments || arguments->row_count != 8) return;
      if (++launches < at) return;
      device_->lost = true;
      throw Error(ErrorCode::kDriver, "the GPU is gone");
    };
    const TuneResult result = run({shape_, second, third});
    EXPECT_GE(launches, at);
    EXPECT_EQ(result.keys[0].status, KeyStatus::kTuned);
    EXPECT_EQ(result.keys[1].status, KeyStatus::kFailed);
    EXPECT_FALSE(result.keys[1].reason.empty());
    EXPECT_EQ(result.keys[2].status, KeyStatus::kSkipped);
    EXPECT_THAT(result.interrupted, HasSubstr("null device was lost: the "));
    cache::ConfigStore store(options_.cache_directory, cache::Role::kUser, {});
    EXPECT_EQ(store.load().size(), 1u);
  }
}

TEST_F(TunerOnNullDevice, InterruptedRunKeepsWholeKeys) {
  runtime::TunedShape second = shape_;
  second.rows = 8;
  bool stop = false;
  tune_.interrupted = [&] { return stop; };
  tune_.on_key = [&](const auto& shape, std::size_t, std::size_t) {
    stop = shape.rows == 8;
  };
  const TuneResult result = run({shape_, second});
  EXPECT_EQ(result.keys[0].status, KeyStatus::kTuned);
  EXPECT_EQ(result.keys[1].status, KeyStatus::kSkipped);
  tune_.interrupted = [] { return false; };
  tune_.on_key = [](const auto&, std::size_t, std::size_t) {};
  const TuneResult again = run({shape_, second});
  EXPECT_EQ(again.keys[0].status, KeyStatus::kStored);
  EXPECT_EQ(again.keys[1].status, KeyStatus::kTuned);
}

TEST_F(TunerOnNullDevice, SpentBudgetSkips) {
  tune_.budget_s = 1e-9;
  const TuneResult result = run();
  EXPECT_EQ(result.keys.front().status, KeyStatus::kSkipped);
  EXPECT_THAT(result.keys.front().reason, HasSubstr("budget"));
}

TEST_F(TunerOnNullDevice, LongCompilesDoNotOverrunTheBudget) {
  on_compile_ = [](const generator::Source&, const std::string&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  tune_.budget_s = 2;
  std::vector<runtime::TunedShape> shapes;
  for (const KernelSpec& spec : {shape_.spec, *parse_op("kl")}) {
    for (const std::int64_t rows : {1, 2, 3, 4}) {
      shapes.push_back({.spec = spec, .rows = rows});
      shapes.back().spec.vocab = kVocab;
    }
  }
  const TuneResult result = run(shapes);
  EXPECT_LE(result.seconds, 1.1 * tune_.budget_s);
  // Somebody was left out of the many candidates, and it is said.
  int not_reached = 0;
  for (const KeyResult& key : result.keys) {
    EXPECT_EQ(key.reason.empty(), key.status == KeyStatus::kTuned);
    for (const Candidate& candidate : key.candidates) {
      not_reached += candidate.status == CandidateStatus::kNotReached;
    }
  }
  EXPECT_GT(not_reached, 0);
}

TEST_F(TunerOnNullDevice, InsideACaptureIsATypedError) {
  Runtime runtime(make_engine());
  device_->capturing = true;
  cache::ConfigStore store(options_.cache_directory, cache::Role::kUser, {});
  try {
    Tuner(runtime, store, tune_).run(std::vector{shape_});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.message(), HasSubstr("captured"));
  }
}

TEST_F(TunerOnNullDevice, ShapesWithoutTensorsAreSkipped) {
  shape_.spec.rows = RowMap::kIndexed;
  const KeyResult key = run().keys.front();
  EXPECT_EQ(key.status, KeyStatus::kSkipped);
  EXPECT_THAT(key.reason, HasSubstr("no tensors"));
}

TEST_F(TunerOnNullDevice, StoreThatTakesNothingIsSaid) {
  options_.cache_directory.reset();
  const TuneResult result = run();
  EXPECT_EQ(result.keys.front().status, KeyStatus::kTuned);
  EXPECT_FALSE(result.stored);
}

}  // namespace
}  // namespace logpjit::tuning
