// Asks the clock, waits, counts.
#include "tuning/throttle_watch.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace logpjit::tuning {
namespace {

/// Of the highest clock. Memory-bound kernels do as well a little below it.
constexpr double kLeastShare = 0.85;
/// Governors average over a second: rounds of this length or so, with a rest as
/// long between them, stay below a cap.
constexpr std::chrono::milliseconds kRest{50};

std::string rounds(int count) {
  return fmt::format("{} {}", count, count == 1 ? "round was" : "rounds were");
}

}  // namespace

bool ThrottleWatch::spoils_round(bool may_repeat) {
  if (meter_ == nullptr) return false;
  const runtime::ClockState state = meter_->read();
  if (state.held_by.empty() || state.share >= kLeastShare) return false;
  if (state.share < slowest_.share) slowest_ = state;
  if (!may_repeat || repeats_left_ == 0) {
    ++kept_;
    return false;
  }
  --repeats_left_;
  ++repeated_;
  std::this_thread::sleep_for(kRest);
  return true;
}

std::string ThrottleWatch::text() const {
  if (repeated_ + kept_ == 0) return {};
  std::string text =
      fmt::format("{} held the clock at {:.0f} %: ", slowest_.held_by,
                  100 * slowest_.share);
  if (repeated_ > 0) text += rounds(repeated_) + " repeated";
  if (repeated_ > 0 && kept_ > 0) text += ", ";
  if (kept_ > 0) text += rounds(kept_) + " kept";
  return text;
}

}  // namespace logpjit::tuning
