// The fallback of KL(A || B), forward and backward.
#pragma once

#include "common/fallback_kl_gradient.cuh"
#include "common/fallback_kl_statistics.cuh"

namespace logpjit::device {

/// KL(A || B) and the statistics of both rows in two reads of each.
template <int kBlock>
LOGPJIT_TUNE(kBlock, "256")
LOGPJIT_KERNEL(kBlock, 1)
fallback_kl_statistics(const FallbackKlStatisticsArguments args) {
  const FallbackKlStatistics work{args.call, args.rows, thread_index()};
  work.run(fallback_place(args.call, args.rows.a.rows));
}

/// Gradient of KL(A || B) with respect to A, B or both.
template <int kBlock>
LOGPJIT_TUNE(kBlock, "256")
LOGPJIT_KERNEL(kBlock, 1)
fallback_kl_gradient(const FallbackKlGradientArguments args) {
  const FallbackKlGradient work{args.call, args.rows, thread_index()};
  work.run(fallback_place(args.call, args.rows.a.rows));
}

}  // namespace logpjit::device
