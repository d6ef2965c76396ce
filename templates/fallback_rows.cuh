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
  const FallbackStatistics work{args.call, args.rows, thread_index()};
  work.run(fallback_place(args.call, args.rows.rows));
}

/// Gradient of any sum of terms from the saved statistics: one read, one write.
template <int kBlock>
LOGPJIT_TUNE(kBlock, "256")
LOGPJIT_KERNEL(kBlock, 1)
fallback_gradient(const FallbackGradientArguments args) {
  const FallbackGradient work{args.call, args.rows, thread_index()};
  work.run(fallback_place(args.call, args.rows.rows));
}

}  // namespace logpjit::device
