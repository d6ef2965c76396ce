// The tuner on a device whose results, times and failures the test makes up.
#include "tuning/tuner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "templates/common/arguments.cuh"
#include "tests/support/device/fake_compiler.hpp"
#include "tests/support/device/null_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tuning/device_tensor.hpp"
#include "tuning/reference.hpp"

namespace logpjit::tuning {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NullDevice;

constexpr std::int64_t kVocab = 16384;
constexpr std::int64_t kRows = 4;

/// log-probabilities and log-sum-exps of the rows of one tensor.
struct RightValues {
  std::vector<float> logp;
  std::vector<float> lse;
};

RightValues right_values(const device::RowStatisticsArguments& arguments) {
  const TensorView logits = TensorView::contiguous(
      arguments.logits, DType::kBf16, {arguments.row_count, kVocab});
  Problem problem = problem_of(logits, kVocab);
  const auto* ids = static_cast<const std::int64_t*>(arguments.ids.data);
  set_ids(problem, {ids, ids + arguments.row_count}, 1);
  RightValues right;
  for (std::int64_t row = 0; row < arguments.row_count; ++row) {
    const RowValues values = reference_values(problem, row);
    right.logp.push_back(static_cast<float>(values.logp.front()));
    right.lse.push_back(static_cast<float>(values.lse));
  }
  return right;
}

std::optional<device::RowStatisticsArguments> statistics_arguments(
    const NullDevice::Launch& launch) {
  device::RowStatisticsArguments arguments;
  if (launch.arguments.size() != sizeof arguments) return std::nullopt;
  std::memcpy(&arguments, launch.arguments.data(), sizeof arguments);
  return arguments;
}

class TunerOnNullDevice : public ::testing::Test {
 protected:
  TunerOnNullDevice() {
    shape_.spec.vocab = kVocab;
    shape_.rows = kRows;
    options_.cache_directory = folder_.path() / "cache";
    options_.log = [this](const std::string& line) { log_.push_back(line); };
    tune_.measure = {.rounds = 3, .graph_ms = 1, .most_launches = 4};
    tune_.compile_threads = 2;
    on_launch_ = [](const NullDevice::Launch&) {};
    // One block size is the fastest; the floor is out of reach.
    const int usual =
        default_config(shape_, NullDevice().device_info).at("block");
    fast_ = usual == 256 ? 512 : 256;
    block_ms_ = {{128, 1.2}, {256, 1.2}, {512, 1.2}, {1024, 1.5}};
    block_ms_[usual] = 1.0;
    block_ms_[fast_] = 0.5;
  }

  std::unique_ptr<runtime::Engine> make_engine() {
    right_.clear();  // memory is used again
    auto device = std::make_unique<NullDevice>();
    device->device_info.l2_bytes = 1 << 20;
    device->on_launch = [this](const NullDevice::Launch& launch) {
      if (const auto arguments = statistics_arguments(launch)) {
        compute(*arguments);
      }
      on_launch_(launch);
    };
    device->on_time = [this](const std::vector<NullDevice::Launch>& launches) {
      double ms = 0;
      for (const auto& launch : launches) ms += time_of(launch);
      return ms == 0 ? 0.01 : ms;
    };
    device_ = device.get();
    auto compiler = std::make_unique<testing::FakeCompiler>();
    compiler->on_compile = on_compile_;
    compiler_ = compiler.get();
    return std::make_unique<runtime::Engine>(options_, std::move(device),
                                             std::move(compiler));
  }

  /// What row_statistics computes, by the reference; once for each tensor.
  void compute(const device::RowStatisticsArguments& arguments) {
    auto& right = right_[{arguments.logits, arguments.row_count}];
    if (right.logp.empty()) right = right_values(arguments);
    std::ranges::copy(right.logp, arguments.logp);
    std::ranges::copy(right.lse, arguments.max);
    std::fill_n(arguments.sum, arguments.row_count, 1.0F);
  }

  double time_of(const NullDevice::Launch& launch) const {
    if (!statistics_arguments(launch)) return 0.1;
    const auto found = block_ms_.find(static_cast<int>(launch.shape.block));
    return found == block_ms_.end() ? 1.0 : found->second;
  }

  TuneResult run(std::vector<runtime::TunedShape> shapes = {}) {
    if (shapes.empty()) shapes = {shape_};
    Runtime runtime(make_engine());
    cache::ConfigStore store(options_.cache_directory, cache::Role::kUser,
                             options_.log);
    return Tuner(runtime, store, tune_).run(shapes);
  }

  const testing::TemporaryDirectory folder_;
  runtime::TunedShape shape_;
  Options options_;
  TuneOptions tune_;
  std::vector<std::string> log_;
  int fast_ = 0;
  std::map<int, double> block_ms_;
  std::function<void(const NullDevice::Launch&)> on_launch_;
  std::function<void(const generator::Source&, const std::string&)> on_compile_;
  std::map<std::pair<const void*, std::int64_t>, RightValues> right_;
  NullDevice* device_ = nullptr;
  testing::FakeCompiler* compiler_ = nullptr;
};

std::map<std::string, int> statuses(const KeyResult& key) {
  std::map<std::string, int> counts;
  for (const Candidate& candidate : key.candidates) {
    ++counts[std::string(name(candidate.status))];
  }
  return counts;
}

TEST_F(TunerOnNullDevice, FastestIsFoundAndStored) {
  const TuneResult result = run();
  ASSERT_EQ(result.keys.size(), 1u);
  const KeyResult& key = result.keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  EXPECT_EQ(key.winner.at("block"), fast_);
  EXPECT_NEAR(key.winner_ms, 0.5, 1e-9);
  EXPECT_EQ(key.candidates.front().config,
            default_config(shape_, device_->info()));
  ASSERT_TRUE(key.accuracy);
  EXPECT_EQ(key.accuracy->misplaced(), 0);
  EXPECT_EQ(key.bytes, kRows * kVocab * 2);
  EXPECT_GT(key.floor.value().median_ms, 0);
  EXPECT_GT(statuses(key)["slow"], 0);
  EXPECT_EQ(compiler_->compiles(),
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
  EXPECT_EQ(compiler_->compiles(), 0);
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

TEST_F(TunerOnNullDevice, DefaultsAreBuiltAheadAndCountedOnce) {
  runtime::TunedShape other = shape_;
  other.spec.rows = RowMap::kIndexed;  // builds, and is then skipped
  std::size_t said = 0;
  tune_.on_defaults = [&](std::size_t count) { said = count; };
  const TuneResult result = run({shape_, other});
  EXPECT_EQ(said, 2u);
  const KeyResult& key = result.keys.front();
  ASSERT_EQ(key.status, KeyStatus::kTuned) << key.reason;
  EXPECT_EQ(compiler_->compiles(),
            static_cast<int>(key.candidates.size()) + 1 + 3);
  EXPECT_FALSE(key.candidates.front().cache_hit);
  EXPECT_GT(key.candidates.front().compile_ms, 0);
  EXPECT_EQ(result.keys.back().status, KeyStatus::kSkipped);
  // To the next run it is in the cache.
  tune_.force = true;
  const TuneResult again = run({shape_, other});
  EXPECT_TRUE(again.keys.front().candidates.front().cache_hit);
  EXPECT_EQ(compiler_->compiles(), 0);
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
