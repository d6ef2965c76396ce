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
  const FallbackPlace place = fallback_place(args.call, args.rows.a.rows);
  const int thread = thread_index();
  if (args.call.softcap != 0) {
    FallbackKlStatistics<true>{args.call, args.rows, thread}.run(place);
  } else {
    FallbackKlStatistics<false>{args.call, args.rows, thread}.run(place);
  }
}

/// Gradient of KL(A || B) with respect to A, B or both.
template <int kBlock>
LOGPJIT_TUNE(kBlock, "256")
LOGPJIT_KERNEL(kBlock, 1)
fallback_kl_gradient(const FallbackKlGradientArguments args) {
  const FallbackPlace place = fallback_place(args.call, args.rows.a.rows);
  const int thread = thread_index();
  if (args.call.softcap != 0) {
    FallbackKlGradient<true>{args.call, args.rows, thread}.run(place);
  } else {
    FallbackKlGradient<false>{args.call, args.rows, thread}.run(place);
  }
}

}  // namespace logpjit::device
