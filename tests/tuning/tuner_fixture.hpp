// A tuner on a device whose results, times and failures the test makes up.
#pragma once

#include "tuning/tuner.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "templates/common/arguments.cuh"
#include "tests/support/device/fake_compiler.hpp"
#include "tests/support/device/null_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tuning/device_tensor.hpp"
#include "tuning/reference.hpp"

namespace logpjit::tuning {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NullDevice;

inline constexpr std::int64_t kVocab = 16384;
inline constexpr std::int64_t kRows = 4;

/// log-probabilities and log-sum-exps of the rows of one tensor.
struct RightValues {
  std::vector<float> logp;
  std::vector<float> lse;
};

inline RightValues right_values(
    const device::RowStatisticsArguments& arguments) {
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

inline std::optional<device::RowStatisticsArguments> statistics_arguments(
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
    device->on_clock = on_clock_;
    device_ = device.get();
    auto compiler = std::make_unique<testing::FakeCompiler>();
    compiles_ = 0;
    compiler->on_compile = [this](const generator::Source& source,
                                  const std::string& target) {
      ++compiles_;
      if (on_compile_) on_compile_(source, target);
    };
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
  std::function<runtime::ClockState()> on_clock_;
  std::function<void(const generator::Source&, const std::string&)> on_compile_;
  std::map<std::pair<const void*, std::int64_t>, RightValues> right_;
  NullDevice* device_ = nullptr;
  std::atomic<int> compiles_ = 0;  ///< of the last engine
};

inline std::map<std::string, int> statuses(const KeyResult& key) {
  std::map<std::string, int> counts;
  for (const Candidate& candidate : key.candidates) {
    ++counts[std::string(name(candidate.status))];
  }
  return counts;
}

}  // namespace logpjit::tuning
