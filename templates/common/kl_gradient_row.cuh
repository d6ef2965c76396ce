// The gradient of one column of KL(A || B), for either side.
#pragma once

#include "common/gradient.cuh"

namespace logpjit::device {

/// e^(x - max) / T scaled by a row constant: factor * 2^(d c).
struct ScaledPower {
  float max;
  float factor;
  float correction;  ///< factor ln 2

  LOGPJIT_DEVICE float at(float d, const RowScale& scale) const {
    const Exponential e =
        exponential(max_number(d, scale.floor), scale.to_log2);
    return e.value * fma(e.rest, correction, factor);
  }
};

LOGPJIT_DEVICE ScaledPower scaled_power(float max, float factor) {
  return {max, settled(factor), settled(factor * kLn2)};
}

/// What the columns of a row pair share. g is the upstream gradient over the
/// side's own temperature.
struct KlGradientRow {
  ScaledPower a;    ///< g p_A when A has a gradient
  ScaledPower a_b;  ///< g p_A when B has one
  ScaledPower b;    ///< g p_B
  /// log(sum_b / sum_a) - KL; NaN when KL is infinite, which makes the gradient
  /// NaN wherever A has probability.
  float offset;
};

LOGPJIT_DEVICE KlGradientRow kl_gradient_row(float max_a, float sum_a,
                                             float max_b, float sum_b, float kl,
                                             float upstream,
                                             const RowScale& scale_a,
                                             const RowScale& scale_b) {
  const float g_a = upstream * scale_a.inverse;
  const float g_b = upstream * scale_b.inverse;
  const float log_ratio = log_accurate(divide(sum_b, sum_a));
  return {scaled_power(max_a, divide(g_a, sum_a)),
          scaled_power(max_a, divide(g_b, sum_a)),
          scaled_power(max_b, divide(g_b, sum_b)),
          settled(kl == infinity() ? not_a_number() : log_ratio - kl)};
}

template <bool kTemperature>
LOGPJIT_DEVICE float in_natural_units(float d, const RowScale& scale) {
  return kTemperature ? d * scale.inverse : d;
}

/// g p_A (log p_A - log p_B - KL): 0 where A has no probability.
template <bool kTemperature>
LOGPJIT_DEVICE float gradient_of_a(float a, float b, const KlGradientRow& row,
                                   const RowScale& scale_a,
                                   const RowScale& scale_b) {
  const float d_a = a - row.a.max;
  const float d_b = b - row.b.max;
  const float p = row.a.at(d_a, scale_a);
  const float log_ratio = in_natural_units<kTemperature>(d_a, scale_a) -
                          in_natural_units<kTemperature>(d_b, scale_b) +
                          row.offset;
  return p == 0.0f ? 0.0f : fma(p, log_ratio, 0.0f);
}

/// g (p_B - p_A): 0 where B is masked.
LOGPJIT_DEVICE float gradient_of_b(float a, float b, const KlGradientRow& row,
                                   const RowScale& scale_a,
                                   const RowScale& scale_b) {
  const float value =
      row.b.at(b - row.b.max, scale_b) - row.a_b.at(a - row.a_b.max, scale_a);
  return b == -infinity() ? 0.0f : value;
}

}  // namespace logpjit::device
