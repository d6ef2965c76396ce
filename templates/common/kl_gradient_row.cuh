// The gradient of one column of KL(A || B), for either side.
#pragma once

#include "common/gradient.cuh"

namespace logpjit::device {

/// What the columns of a row pair share.
struct KlGradientRow {
  float max_a;
  float max_b;
  float inverse_sum_a;
  float inverse_sum_b;
  float log_ratio;  ///< log(sum_b / sum_a)
  float kl;
  float scaled_a;  ///< upstream / T of A
  float scaled_b;
};

LOGPJIT_DEVICE float probability(float x, float max, float inverse_sum,
                                 const RowScale& scale) {
  const float d = max_number(x - max, scale.floor);
  const Exponential e = exponential(d, scale.to_log2);
  const float scaled = e.value * inverse_sum;
  return fma(scaled, e.rest * kLn2, scaled);
}

/// g p_A (log p_A - log p_B - KL): 0 where A has no probability, NaN elsewhere
/// when the divergence is infinite.
LOGPJIT_DEVICE float gradient_of_a(float a, float b, float p_a,
                                   const KlGradientRow& row,
                                   const RowScale& scale_a,
                                   const RowScale& scale_b) {
  const float log_ratio = (a - row.max_a) * scale_a.inverse -
                          (b - row.max_b) * scale_b.inverse + row.log_ratio;
  const float value =
      fma(row.scaled_a * p_a, log_ratio - row.kl, 0.0f);
  const bool infinite = row.kl == infinity();
  return p_a == 0.0f ? 0.0f : infinite ? not_a_number() : value;
}

/// g (p_B - p_A): 0 where B is masked.
LOGPJIT_DEVICE float gradient_of_b(float b, float p_a, float p_b,
                                   const KlGradientRow& row) {
  const float value = fma(row.scaled_b, p_b - p_a, 0.0f);
  return b == -infinity() ? 0.0f : value;
}

}  // namespace logpjit::device
