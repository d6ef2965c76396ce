// The selector on made-up and replayed times.
#include "tuning/selector.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace logpjit::tuning {
namespace {

Timing steady(double ms) { return timing_of({ms, ms, ms}); }

std::size_t winner(const std::vector<Timing>& timings) {
  return select(timings).value().winner;
}

TEST(Selector, FasterByMoreThanTheBandWins) {
  const auto selection = select(std::vector{steady(1), steady(0.97)});
  EXPECT_EQ(selection->winner, 1u);
  EXPECT_EQ(selection->verdict, Verdict::kFaster);
}

TEST(Selector, DefaultWithinTheBandStays) {
  const auto selection = select(std::vector{steady(1), steady(0.99)});
  EXPECT_EQ(selection->winner, 0u);
  EXPECT_EQ(selection->fastest, 1u);
  EXPECT_EQ(selection->verdict, Verdict::kDefaultWithinBand);
  EXPECT_EQ(select(std::vector{steady(1), steady(1.5)})->verdict,
            Verdict::kDefaultFastest);
}

TEST(Selector, OverlappingSpreadsAreATie) {
  const Timing noisy = timing_of({0.8, 0.9, 1.0, 1.1, 1.2});
  const Timing slower = timing_of({0.95, 1.0, 1.1, 1.2, 1.3});
  EXPECT_TRUE(is_tie(noisy, slower, 0.02));
  EXPECT_EQ(winner({slower, noisy}), 0u);
}

TEST(Selector, FirstOfTiedWins) {
  const auto selection =
      select(std::vector{steady(1), steady(0.805), steady(0.8)});
  EXPECT_EQ(selection->winner, 1u);
  EXPECT_EQ(selection->tied, 2u);
  EXPECT_EQ(selection->verdict, Verdict::kFirstOfTied);
}

TEST(Selector, WhatIsNoMeasurementIsRejected) {
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_FALSE(is_measurement(timing_of({bad})));
    EXPECT_FALSE(is_measurement(timing_of({1, bad, 1})));
    EXPECT_EQ(winner({steady(1), timing_of({bad})}), 0u);
    EXPECT_FALSE(select(std::vector{timing_of({bad}), steady(1)}));
  }
  EXPECT_FALSE(is_measurement({}));
  EXPECT_FALSE(select({}));
  EXPECT_EQ(winner({steady(1), Timing{}}), 0u);
}

TEST(Selector, SpreadAboveTheGateIsUnstable) {
  const Timing wild = timing_of({1, 2, 3, 4, 5});
  EXPECT_FALSE(select(std::vector{wild, steady(9)})->stable);
  EXPECT_TRUE(select(std::vector{steady(1), wild})->stable);
}

/// Two configurations 1 % apart, 3 % of noise, 60 processes.
TEST(Selector, ReplayedNoisyTimesPickTheSameWinner) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(1, 0.03);
  const auto measured = [&](double ms) {
    std::vector<double> samples(7);
    for (double& sample : samples) sample = ms * noise(random);
    return timing_of(samples);
  };
  std::set<std::size_t> winners;
  for (int process = 0; process < 60; ++process) {
    winners.insert(winner({measured(1.5), measured(1.0), measured(0.99)}));
  }
  EXPECT_EQ(winners, (std::set<std::size_t>{1}));
}

/// Clocks that ramp up by 10 % meet all alike when rounds are interleaved.
TEST(Selector, DriftDoesNotChooseTheLast) {
  std::vector<double> first;
  std::vector<double> second;
  for (int round = 0; round < 7; ++round) {
    const double clock = 1 - 0.1 * round / 6;
    first.push_back(1.0 * clock);
    second.push_back(1.001 * clock);
  }
  const auto selection =
      select(std::vector{timing_of(first), timing_of(second)});
  EXPECT_EQ(selection->winner, 0u);
  EXPECT_TRUE(selection->stable);
}

}  // namespace
}  // namespace logpjit::tuning
