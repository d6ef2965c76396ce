// Choosing among measured configurations: a pure function.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "tuning/measure.hpp"

namespace logpjit::tuning {

struct SelectOptions {
  /// Medians within this share of the best are equal.
  double tie_band = 0.02;
  /// A winner or default whose spread is above this was measured on a device
  /// that was busy with something else.
  double most_spread = 0.1;
};

enum class Verdict {
  kDefaultFastest,     ///< nothing was faster
  kDefaultWithinBand,  ///< faster ones were not faster beyond noise
  kFaster,             ///< one was faster than all others
  kFirstOfTied,        ///< several were alike: the first of them
};
std::string_view name(Verdict verdict);

struct Selection {
  std::size_t winner = 0;
  std::size_t fastest = 0;  ///< by median alone
  std::size_t tied = 1;     ///< how many cannot be told from the fastest
  Verdict verdict = Verdict::kDefaultFastest;
  /// Whether the spreads allow to keep the result.
  bool stable = true;
};

/// Whether it is a measurement at all: samples, a median and a spread, all
/// finite, the times above 0.
bool is_measurement(const Timing& timing);

/// Whether the two cannot be told apart: medians within the band, or spreads
/// that overlap: from an interquartile range below the first quartile to as
/// much above the third.
bool is_tie(const Timing& a, const Timing& b, double band);

/// The winner among `timings`; place 0 is the default, the others in the order
/// of preference. What is no measurement cannot win. All that tie with the
/// fastest are equal, and the first of them wins: the default, if it is among
/// them. Nothing when the default is no measurement.
std::optional<Selection> select(std::span<const Timing> timings,
                                const SelectOptions& options = {});

}  // namespace logpjit::tuning
