// The fallback of the row operations: built with the project, so that they work
// where no kernel can be built at run time.
#pragma once

#include "common/fallback_gradient.cuh"
#include "common/fallback_statistics.cuh"

namespace logpjit::device {

/// Values and statistics of each row in two reads: the maximum, then sums about
/// it. Any element type, vocabulary, layout and set of terms.
template <int kBlock>
LOGPJIT_TUNE(kBlock, "256")
LOGPJIT_KERNEL(kBlock, 1)
fallback_statistics(const FallbackStatisticsArguments args) {
  constexpr int kHeavy = kTermEntropy | kTermSquares | kTermArgmax;
  const FallbackPlace place = fallback_place(args.call, args.rows.rows);
  const int thread = thread_index();
  if (args.call.softcap != 0) {
    FallbackStatistics<true, true>{args.call, args.rows, thread}.run(place);
  } else if ((args.call.terms & kHeavy) != 0) {
    FallbackStatistics<false, true>{args.call, args.rows, thread}.run(place);
  } else {
    FallbackStatistics<false, false>{args.call, args.rows, thread}.run(place);
  }
}

/// Gradient of any sum of terms from the saved statistics: one read, one write.
template <int kBlock>
LOGPJIT_TUNE(kBlock, "256")
LOGPJIT_KERNEL(kBlock, 1)
fallback_gradient(const FallbackGradientArguments args) {
  const FallbackPlace place = fallback_place(args.call, args.rows.rows);
  const int thread = thread_index();
  if (args.call.softcap != 0) {
    FallbackGradient<true>{args.call, args.rows, thread}.run(place);
  } else {
    FallbackGradient<false>{args.call, args.rows, thread}.run(place);
  }
}

}  // namespace logpjit::device
