// A partial sweep over two rows for KL(A || B).
#pragma once

#include "common/state.cuh"

namespace logpjit::device {

/// With t the base-2 exponents about each side's maximum:
///   cross = sum of 2^t_a (t_a - t_b) over the live columns of A.
/// A column that is live in A and masked in B makes `cross` infinite or NaN,
/// for good: that is the flag by which the value is +inf, decided on logits.
struct KlState {
  float max_a;
  float sum_a;
  float max_b;
  float sum_b;
  float cross;
};

LOGPJIT_DEVICE KlState empty_kl_state() {
  return {-infinity(), 0.0f, -infinity(), 0.0f, 0.0f};
}

/// How far B's anchor moves; a partial without live columns moves by nothing.
LOGPJIT_DEVICE float shift_of(float max, float base, float to_log2) {
  return max == -infinity() ? 0.0f : (max - base) * to_log2;
}

/// The state about maxima that are no lower.
LOGPJIT_DEVICE void raise(KlState& state, float max_a, float max_b,
                          const RowScale& scale_a, const RowScale& scale_b) {
  const float base_b = anchor(max_b);
  const float exponent_a = (state.max_a - anchor(max_a)) * scale_a.to_log2;
  const float shift_b = shift_of(state.max_b, base_b, scale_b.to_log2);
  const float factor_a = exp2_centered(exponent_a);
  const float factor_b =
      exp2_centered((state.max_b - base_b) * scale_b.to_log2);
  state.cross = factor_a * fma(bounded_exponent(exponent_a) - shift_b,
                               state.sum_a, state.cross);
  state.sum_a *= factor_a;
  state.sum_b *= factor_b;
  state.max_a = max_a;
  state.max_b = max_b;
}

/// Adds one group of capped logits of both sides to a state whose maxima are
/// no lower than theirs.
LOGPJIT_DEVICE void add(KlState& state, const float (&a)[kGroup],
                        const float (&b)[kGroup], const RowScale& scale_a,
                        const RowScale& scale_b) {
  const float base_a = anchor(state.max_a);
  const float base_b = anchor(state.max_b);
  float terms_a[kGroup];
  float terms_b[kGroup];
  float ratios[kGroup];
  LOGPJIT_UNROLL
  for (int i = 0; i < kGroup; ++i) {
    const float exponent_a = (a[i] - base_a) * scale_a.to_log2;
    const float exponent_b = (b[i] - base_b) * scale_b.to_log2;
    terms_a[i] = exp2_approx(exponent_a);
    terms_b[i] = exp2_approx(exponent_b);
    // Masked in A: -inf or NaN becomes finite, times 0.
    ratios[i] = max_number(exponent_a - exponent_b, -0x1p+127f);
  }
  state.sum_a += sum_of(terms_a);
  state.sum_b += sum_of(terms_b);
  state.cross += dot_of(terms_a, ratios);
}

/// Both states as one, symmetric bit for bit.
LOGPJIT_DEVICE KlState merge(KlState x, KlState y, const RowScale& scale_a,
                             const RowScale& scale_b) {
  const float max_a = max_nan(x.max_a, y.max_a);
  const float max_b = max_nan(x.max_b, y.max_b);
  raise(x, max_a, max_b, scale_a, scale_b);
  raise(y, max_a, max_b, scale_a, scale_b);
  return {max_a, x.sum_a + y.sum_a, max_b, x.sum_b + y.sum_b,
          x.cross + y.cross};
}

/// cross / sum_a + log(sum_b / sum_a), one logarithm; NaN when either row has
/// no distribution, else +inf when A has a live column where B is masked.
LOGPJIT_DEVICE float divergence(const KlState& state) {
  const bool undefined =
      state.max_a - state.max_a != 0.0f || state.max_b - state.max_b != 0.0f;
  const bool infinite = state.cross - state.cross != 0.0f;
  const float value = divide(state.cross * kLn2, state.sum_a) +
                      log_accurate(divide(state.sum_b, state.sum_a));
  return undefined ? not_a_number() : infinite ? infinity() : value;
}

}  // namespace logpjit::device
