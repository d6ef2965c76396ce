// Times and accuracy, on a device whose clock the test sets.
#include "tuning/measure.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tests/support/device/null_device.hpp"
#include "tuning/accuracy.hpp"

namespace logpjit::tuning {
namespace {

TEST(Timing, MedianAndQuartiles) {
  const Timing timing = timing_of({5, 1, 3, 2, 4});
  EXPECT_EQ(timing.median_ms, 3);
  EXPECT_DOUBLE_EQ(timing.spread, 2.0 / 3);
  EXPECT_EQ(timing.rounds_ms, (std::vector<double>{5, 1, 3, 2, 4}));
  EXPECT_EQ(timing_of({7}).median_ms, 7);
  EXPECT_EQ(timing_of({7}).spread, 0);
  EXPECT_EQ(timing_of({1, 2}).median_ms, 1.5);
}

/// Launches of two kinds, told apart by their grid; the slow one takes 3 ms.
class Measure : public ::testing::Test {
 protected:
  Measure() {
    device_.on_time = [](const auto& launches) {
      double ms = 0;
      for (const auto& launch : launches) {
        ms += launch.shape.grid == 1 ? 0.1 : 3;
      }
      return ms;
    };
    device_.on_clock = [this] {
      if (slow_rounds_ == 0) return runtime::ClockState{.share = 0.9};
      --slow_rounds_;
      return runtime::ClockState{.share = 0.52, .held_by = "the power cap"};
    };
    clock_ = device_.make_clock_meter();
  }
  std::vector<Timing> timings(std::span<const Work> works,
                              const MeasureOptions& options) {
    return measure(device_, works, options, watch_);
  }
  Work work(std::uint32_t grid, std::vector<int>* turns = nullptr) {
    return [this, grid, turns](CUstream_st* stream, int turn) {
      if (turns != nullptr) turns->push_back(turn);
      device_.launch(function_, {.grid = grid}, stream, nullptr, 0);
    };
  }

  testing::NullDevice device_;
  testing::NullFunction function_{cache::Image{}};
  int slow_rounds_ = 0;
  std::unique_ptr<runtime::ClockMeter> clock_;
  ThrottleWatch watch_{nullptr, 0};
};

TEST_F(Measure, TimeOfOneLaunch) {
  const Work works[] = {work(1), work(2)};
  const auto timings = this->timings(works, {.rounds = 3});
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_NEAR(timings[0].median_ms, 0.1, 1e-12);
  EXPECT_NEAR(timings[1].median_ms, 3, 1e-12);
  EXPECT_EQ(timings[1].rounds_ms.size(), 3u);
}

TEST_F(Measure, LongWorkGetsFewerLaunches) {
  const Work works[] = {work(1), work(2)};
  timings(works, {.rounds = 1, .graph_ms = 20, .most_launches = 100});
  std::size_t quick = 0;
  std::size_t slow = 0;
  for (const auto& launch : device_.launches()) {
    ++(launch.shape.grid == 1 ? quick : slow);
  }
  // A calibration of one launch, then a graph; each runs twice.
  EXPECT_EQ(quick, 2 + 2 * 100u);
  EXPECT_EQ(slow, 2 + 2 * 7u);
}

TEST_F(Measure, TurnsGoRoundTheBuffers) {
  std::vector<int> turns;
  const Work works[] = {work(2, &turns)};
  timings(works, {.rounds = 2, .graph_ms = 6});
  for (std::size_t i = 0; i < turns.size(); ++i) {
    EXPECT_EQ(turns[i], static_cast<int>(i));
  }
}

TEST_F(Measure, RoundsBelowTheClockAreRepeated) {
  const Work works[] = {work(1), work(2)};
  watch_ = ThrottleWatch(clock_.get(), 4);
  slow_rounds_ = 2;
  EXPECT_EQ(timings(works, {.rounds = 3})[1].rounds_ms.size(), 3u);
  EXPECT_EQ(slow_rounds_, 0);
  EXPECT_EQ(watch_.text(),
            "the power cap held the clock at 52 %: 2 rounds were repeated");
}

TEST_F(Measure, NotForever) {
  const Work works[] = {work(2)};
  watch_ = ThrottleWatch(clock_.get(), 1);
  slow_rounds_ = 1000;
  EXPECT_EQ(timings(works, {.rounds = 3})[0].rounds_ms.size(), 3u);
  EXPECT_EQ(slow_rounds_, 1000 - 4);
  EXPECT_EQ(watch_.text(),
            "the power cap held the clock at 52 %: 1 round was repeated, 3 "
            "rounds were kept");
}

TEST_F(Measure, ClocksThatAreLowForNoReasonAreRight) {
  device_.on_clock = [] { return runtime::ClockState{.share = 0.5}; };
  clock_ = device_.make_clock_meter();
  watch_ = ThrottleWatch(clock_.get(), 4);
  EXPECT_FALSE(watch_.spoils_round(true));
  EXPECT_EQ(watch_.text(), "");
  EXPECT_FALSE(ThrottleWatch(nullptr, 4).spoils_round(true));
}

TEST_F(Measure, NobodyIsTriedWhereTheLaunchesAreKnown) {
  std::vector<int> turns;
  TimedWork timed(device_, work(2, &turns), 7);
  EXPECT_EQ(timed.launches(), 7);
  EXPECT_FALSE(timed.calibration());
  EXPECT_EQ(device_.launches().size(), 7u);  // the replay that does not count
  EXPECT_NEAR(timed.sample(), 3, 1e-12);
  EXPECT_EQ(device_.launches().size(), 2 * 7u);
  EXPECT_EQ(turns.back(), 13);
}

TEST(Accuracy, OfRowsSideBySideIsThatOfAllTogether) {
  const auto add_row = [](std::int64_t row, Accuracy& accuracy) {
    const auto right = static_cast<double>(row) + 1;
    accuracy.add(row % 3 == 0 ? right : right * 1.01, right, DType::kBf16);
    if (row == 5) accuracy.add(NAN, 1, DType::kBf16);
  };
  Accuracy together;
  for (std::int64_t row = 0; row < 9; ++row) add_row(row, together);
  const Accuracy apart = accuracy_of_rows(9, add_row);
  EXPECT_EQ(apart.count(), together.count());
  EXPECT_EQ(apart.misplaced(), 1);
  EXPECT_EQ(apart.correctly_rounded(), together.correctly_rounded());
  EXPECT_EQ(apart.max_absolute(), together.max_absolute());
  EXPECT_EQ(apart.max_relative(), together.max_relative());
  EXPECT_EQ(apart.max_ulp(), together.max_ulp());
  EXPECT_EQ(accuracy_of_rows(0, add_row).count(), 0);
  EXPECT_THROW(accuracy_of_rows(4,
                                [](std::int64_t row, Accuracy&) {
                                  if (row == 2) throw std::runtime_error("no");
                                }),
               std::runtime_error);
}

TEST(Accuracy, ErrorsAndRounding) {
  Accuracy accuracy;
  EXPECT_EQ(accuracy.correctly_rounded(), 1);
  accuracy.add(1, 1, DType::kBf16);
  accuracy.add(1.0078125, 1, DType::kBf16);
  accuracy.add(2, 2.001, DType::kBf16);
  EXPECT_EQ(accuracy.count(), 3);
  EXPECT_DOUBLE_EQ(accuracy.max_ulp(), 1);
  EXPECT_DOUBLE_EQ(accuracy.max_absolute(), 0.0078125);
  EXPECT_DOUBLE_EQ(accuracy.correctly_rounded(), 2.0 / 3);
  EXPECT_EQ(accuracy.misplaced(), 0);
}

TEST(Accuracy, InfinitiesAndNaNMustBeInTheirPlace) {
  Accuracy accuracy;
  accuracy.add(INFINITY, 1e39, DType::kFp32);
  accuracy.add(NAN, NAN, DType::kFp32);
  EXPECT_EQ(accuracy.misplaced(), 0);
  accuracy.add(NAN, 1, DType::kFp32);
  accuracy.add(1, NAN, DType::kFp32);
  accuracy.add(INFINITY, -INFINITY, DType::kFp32);
  EXPECT_EQ(accuracy.misplaced(), 3);
  EXPECT_EQ(accuracy.max_absolute(), 0);
}

}  // namespace
}  // namespace logpjit::tuning
