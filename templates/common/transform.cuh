// z = softcap(x) / T, split so that the maximum is subtracted before scaling.
#pragma once

#include "common/rows.cuh"

namespace logpjit::device {

constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kLn2 = 0x1.62e430p-1f;

/// A row's scales. `to_log2` turns a difference of capped logits into a base-2
/// exponent; `inverse` into natural units. Without temperature both are
/// constants, and T = 1 gives the same bits.
struct RowScale {
  float to_log2;
  float inverse;
  float cap;
  /// No difference below this has a probability: 2^(floor * to_log2) is 0, and
  /// products with it stay finite.
  float floor;
};

template <bool kTemperature, bool kSoftcap>
LOGPJIT_DEVICE RowScale row_scale(const TransformArgument& transform,
                                  RowPosition at) {
  RowScale scale{kLog2E, 1.0f, 0.0f, -256.0f};
  if constexpr (kTemperature) {
    const float temperature = transform.temperatures.data != nullptr
                                  ? row_scalar(transform.temperatures, at)
                                  : transform.temperature;
    scale.to_log2 = divide(kLog2E, temperature);
    scale.inverse = divide(1.0f, temperature);
    scale.floor = -256.0f * temperature;
  }
  if constexpr (kSoftcap) scale.cap = transform.softcap;
  return scale;
}

/// The capped logit; a cap of 0 is none. Infinities pass: a masked (-inf)
/// column stays masked, and +inf is not hidden.
template <bool kSoftcap>
LOGPJIT_DEVICE float capped(float logit, const RowScale& scale) {
  if constexpr (kSoftcap) {
    const float soft = scale.cap * tanh_accurate(divide(logit, scale.cap));
    return logit - logit == 0.0f && scale.cap != 0.0f ? soft : logit;
  } else {
    return logit;
  }
}

/// A gradient with respect to the capped logit as one with respect to the
/// logit: times 1 - (capped / cap)^2, or 1 where an infinity passed.
template <bool kSoftcap>
LOGPJIT_DEVICE float through_cap(float gradient, float capped_logit,
                                 const RowScale& scale) {
  if constexpr (kSoftcap) {
    const float ratio = divide(capped_logit, scale.cap);
    const bool is_capped =
        capped_logit - capped_logit == 0.0f && scale.cap != 0.0f;
    return is_capped ? gradient * fma(-ratio, ratio, 1.0f) : gradient;
  } else {
    return gradient;
  }
}

}  // namespace logpjit::device
