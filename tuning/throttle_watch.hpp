// Rounds of samples that a slowed-down device has spoilt.
#pragma once

#include <string>

#include "runtime/device.hpp"

namespace logpjit::tuning {

/// A GPU that reads memory at full speed reaches its power cap within a second
/// or so; then its clock falls by up to a half, which costs some configurations
/// more than others: such times say nothing of those on a cool device. For one
/// thread.
class ThrottleWatch {
 public:
  /// `meter` must outlive it; null where the clock cannot be asked for, which
  /// finds nothing. At most so many rounds are repeated.
  ThrottleWatch(runtime::ClockMeter* meter, int most_repeats)
      : meter_(meter), repeats_left_(most_repeats) {}

  /// Asked after each round. True: the device ran below its clock, and has
  /// rested since; the round's samples are to be dropped, and taken again.
  /// Where it `may_repeat` no more, such a round counts like any other.
  bool spoils_round(bool may_repeat);

  /// "the power cap held the clock at 52 %: 3 rounds were repeated, 1 was
  /// kept"; empty when nothing did.
  std::string text() const;

 private:
  runtime::ClockMeter* meter_;
  int repeats_left_;
  int repeated_ = 0;
  int kept_ = 0;
  runtime::ClockState slowest_;
};

}  // namespace logpjit::tuning
