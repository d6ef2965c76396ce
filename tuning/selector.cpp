// Choosing among measured configurations.
#include "tuning/selector.hpp"

#include <algorithm>
#include <cmath>

namespace logpjit::tuning {

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kDefaultFastest:
      return "default_fastest";
    case Verdict::kDefaultWithinBand:
      return "default_within_band";
    case Verdict::kFaster:
      return "faster";
    case Verdict::kFirstOfTied:
      return "first_of_tied";
  }
  return "";
}

bool is_measurement(const Timing& timing) {
  const auto is_time = [](double ms) { return std::isfinite(ms) && ms > 0; };
  return !timing.rounds_ms.empty() && is_time(timing.median_ms) &&
         std::isfinite(timing.spread) && timing.spread >= 0 &&
         std::ranges::all_of(timing.rounds_ms, is_time);
}

bool is_tie(const Timing& a, const Timing& b, double band) {
  const Timing& fast = a.median_ms <= b.median_ms ? a : b;
  const Timing& slow = a.median_ms <= b.median_ms ? b : a;
  // An interquartile range beyond the quartiles: for noise as it is found, a
  // few times as wide as two medians of it are likely to lie apart.
  const double reach = fast.high_ms - fast.low_ms + slow.high_ms - slow.low_ms;
  return slow.median_ms <= fast.median_ms * (1 + band) ||
         slow.low_ms <= fast.high_ms + reach;
}

std::optional<Selection> select(std::span<const Timing> timings,
                                const SelectOptions& options) {
  if (timings.empty() || !is_measurement(timings.front())) return std::nullopt;
  Selection selection;
  for (std::size_t i = 1; i < timings.size(); ++i) {
    if (is_measurement(timings[i]) &&
        timings[i].median_ms < timings[selection.fastest].median_ms) {
      selection.fastest = i;
    }
  }
  const Timing& best = timings[selection.fastest];
  selection.tied = 0;
  for (std::size_t i = 0; i < timings.size(); ++i) {
    if (!is_measurement(timings[i]) ||
        !is_tie(timings[i], best, options.tie_band)) {
      continue;
    }
    if (selection.tied++ == 0) selection.winner = i;
  }
  if (selection.winner != 0) {
    selection.verdict =
        selection.tied > 1 ? Verdict::kFirstOfTied : Verdict::kFaster;
  } else if (selection.fastest != 0) {
    selection.verdict = Verdict::kDefaultWithinBand;
  }
  selection.stable = timings[selection.winner].spread <= options.most_spread &&
                     timings.front().spread <= options.most_spread;
  return selection;
}

}  // namespace logpjit::tuning
