// KL(A || B) of one pair of rows in two reads of each.
#pragma once

#include "common/fallback_block.cuh"
#include "common/results.cuh"

namespace logpjit::device {

template <bool kSoftcap>
struct FallbackKlStatistics {
  const FallbackCall& call;
  const KlStatisticsArguments& args;
  int thread;

  /// One of the two rows.
  struct Side {
    AnyTypeRow row;
    RowScale scale;
    float max;

    LOGPJIT_DEVICE float cap(float x) const {
      return capped<kSoftcap>(x, scale);
    }
    /// Base-2 exponent of a capped logit about the maximum.
    LOGPJIT_DEVICE float exponent(float x) const {
      return (x - max) * scale.to_log2;
    }
  };

  LOGPJIT_DEVICE void run(const FallbackPlace& place) const {
    if (!place.listed) {
      if (thread == 0) {
        write(place.row, 0.0f, -infinity(), 0.0f, -infinity(), 0.0f);
      }
      return;
    }
    Side a = side_of(args.a, call.logits, place);
    Side b = side_of(args.b, call.other, place);
    find_maxima(a, b);
    float sums[4] = {not_a_number(), not_a_number(), 0.0f, 0.0f};
    const bool undefined = is_undefined(a.max) || is_undefined(b.max);
    if (a.max == -infinity()) sums[0] = 0.0f;
    if (b.max == -infinity()) sums[1] = 0.0f;
    if (!undefined) find_sums(a, b, sums);
    const float value = divide(sums[2] * kLn2, sums[0]) +
                        log_accurate(divide(sums[1], sums[0]));
    const float kl = undefined         ? not_a_number()
                     : sums[3] != 0.0f ? infinity()
                                       : value;
    if (thread == 0) write(place.row, kl, a.max, sums[0], b.max, sums[1]);
  }

  LOGPJIT_DEVICE Side side_of(const SideArgument& side, int dtype,
                              const FallbackPlace& place) const {
    return {any_type_row(side.logits, dtype,
                         element_offset(side.rows, place.storage)),
            row_scale<true, kSoftcap>(side.transform, place.position), 0.0f};
  }

  LOGPJIT_DEVICE void find_maxima(Side& a, Side& b) const {
    float maxima[2] = {-infinity(), -infinity()};
    for_each_pair(a.row, b.row, call.vocab, thread,
                  [&](i64, const float(&x)[kGroup], const float(&y)[kGroup]) {
                    LOGPJIT_UNROLL
                    for (int i = 0; i < kGroup; ++i) {
                      maxima[0] = max_nan(maxima[0], a.cap(x[i]));
                      maxima[1] = max_nan(maxima[1], b.cap(y[i]));
                    }
                  });
    fold_block(maxima, thread,
               [](int, float p, float q) { return max_nan(p, q); });
    a.max = maxima[0];
    b.max = maxima[1];
  }

  /// Sums of A and B, of A times the difference of exponents, and whether a
  /// column is live in A and masked in B: decided on logits.
  LOGPJIT_DEVICE void find_sums(const Side& a, const Side& b,
                                float (&sums)[4]) const {
    CarriedSum of_a;
    CarriedSum of_b;
    CarriedSum cross;
    double mismatch = 0.0;
    for_each_pair(a.row, b.row, call.vocab, thread,
                  [&](i64, const float(&x)[kGroup], const float(&y)[kGroup]) {
                    float terms_a[kGroup];
                    float terms_b[kGroup];
                    float crossed[kGroup];
                    LOGPJIT_UNROLL
                    for (int i = 0; i < kGroup; ++i) {
                      const float capped_a = a.cap(x[i]);
                      const float capped_b = b.cap(y[i]);
                      const float exponent_a = a.exponent(capped_a);
                      const float exponent_b = b.exponent(capped_b);
                      terms_a[i] = exp2_approx(exponent_a);
                      terms_b[i] = exp2_approx(exponent_b);
                      const bool masked = capped_b == -infinity();
                      if (masked && capped_a > -infinity()) mismatch = 1.0;
                      crossed[i] = terms_a[i] > 0.0f && !masked
                                       ? terms_a[i] * (exponent_a - exponent_b)
                                       : 0.0f;
                    }
                    of_a.add(sum_of_group(terms_a));
                    of_b.add(sum_of_group(terms_b));
                    cross.add(sum_of_group(crossed));
                  });
    double all[4] = {of_a.value(), of_b.value(), cross.value(), mismatch};
    fold_block(all, thread, [](int, double p, double q) { return p + q; });
    LOGPJIT_UNROLL
    for (int i = 0; i < 4; ++i) sums[i] = static_cast<float>(all[i]);
  }

  LOGPJIT_DEVICE void write(i64 n, float kl, float max_a, float sum_a,
                            float max_b, float sum_b) const {
    args.kl[n] = kl;
    if (args.max_a != nullptr) args.max_a[n] = max_a;
    if (args.sum_a != nullptr) args.sum_a[n] = sum_a;
    if (args.max_b != nullptr) args.max_b[n] = max_b;
    if (args.sum_b != nullptr) args.sum_b[n] = sum_b;
  }
};

}  // namespace logpjit::device
