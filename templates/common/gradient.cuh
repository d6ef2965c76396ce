// The gradient of a row by superposition: one formula for every sum of terms.
#pragma once

#include "common/results.cuh"

namespace logpjit::device {

/// Upstream gradients of one row.
struct Upstream {
  float logp;  ///< sum over the live ids
  float entropy;
  float lse;
  float squares;
};

/// A row's share of
///   gradient_j = p_j (-G - g_H (log p_j + H) + g_Z + 2 g_2 (p_j - C))
/// as coefficients: p_j (constant + slope d + curve p_j) with d = x_j - max.
/// The chain rule's 1/T is in them.
struct RowGradient {
  float max;
  float to_log2;
  float floor;
  float inverse_sum;
  float constant;    ///< of plain terms: divided by the sum already
  float correction;  ///< of plain terms: constant times ln 2
  float slope;
  float curve;
};

/// Terms whose gradient is a multiple of p.
template <int kTerms>
constexpr bool kIsPlain = (kTerms & (kTermEntropy | kTermSquares)) == 0;

template <int kTerms>
LOGPJIT_DEVICE RowGradient row_gradient_of(float max, float sum, float entropy,
                                           float squares,
                                           const Upstream& upstream,
                                           const RowScale& scale) {
  RowGradient row{};
  row.max = max;
  row.to_log2 = scale.to_log2;
  row.floor = scale.floor;
  float constant = -upstream.logp;
  if constexpr ((kTerms & kTermLse) != 0) constant += upstream.lse;
  if constexpr ((kTerms & kTermEntropy) != 0) {
    constant -= upstream.entropy * (entropy - log_accurate(sum));
    row.slope = -upstream.entropy * scale.inverse * scale.inverse;
  }
  if constexpr ((kTerms & kTermSquares) != 0) {
    constant -= 2.0f * upstream.squares * squares;
    row.curve = 2.0f * upstream.squares * scale.inverse;
  }
  row.constant = constant * scale.inverse;
  if constexpr (kIsPlain<kTerms>) {
    row.constant = settled(divide(row.constant, sum));
    row.correction = settled(row.constant * kLn2);
  } else {
    row.constant = settled(row.constant);
    row.inverse_sum = settled(divide(1.0f, sum));
  }
  return row;
}

/// 2^(d c) = value (1 + rest ln 2), rest below 2^-20: the product d c is
/// carried to twice its precision, without which one bf16 gradient in 10000
/// would round the wrong way. 0 below the floor, where rest is finite.
struct Exponential {
  float value;
  float rest;
};
template <bool kPlain = false>
LOGPJIT_DEVICE Exponential exponential(float d, float to_log2) {
  float high = d * to_log2;
  // Or a constant factor is multiplied twice, as d c and d (-c). Other terms
  // have no register to spare for it.
  if constexpr (kPlain) high = opaque(high);
  return {exp2_approx(high), fma(d, to_log2, -high)};
}

/// Gradient of a column without its one-hot part. `x` is the capped logit. A
/// column without probability gets +0.
template <int kTerms, bool kSoftcap>
LOGPJIT_DEVICE float column_gradient(float x, const RowGradient& row,
                                     const RowScale& scale) {
  // A NaN logit is a NaN maximum: every coefficient of the row is NaN then.
  const float d = max_number(x - row.max, row.floor);
  const Exponential e = exponential<kIsPlain<kTerms>>(d, row.to_log2);
  float value;
  if constexpr (kIsPlain<kTerms>) {
    value = fma(e.value, fma(e.rest, row.correction, row.constant), 0.0f);
  } else {
    const float p = e.value * row.inverse_sum * fma(e.rest, kLn2, 1.0f);
    float weight = row.constant;
    if constexpr ((kTerms & kTermEntropy) != 0) {
      weight = fma(row.slope, d, weight);
    }
    if constexpr ((kTerms & kTermSquares) != 0) {
      weight = fma(row.curve, p, weight);
    }
    value = fma(p, weight, 0.0f);
  }
  return through_cap<kSoftcap>(value, x, scale);
}

/// The column of the row's only live id, with its one-hot part: 1 - p_t comes
/// from expm1, exact for p_t near 1.
template <int kTerms, bool kSoftcap>
LOGPJIT_DEVICE float target_gradient(float x, float sum, float upstream_logp,
                                     const RowGradient& row,
                                     const RowScale& scale) {
  const float log_p = log_probability(x, row.max, log_accurate(sum), scale);
  float value = upstream_logp * -expm1_accurate(log_p) * scale.inverse;
  if constexpr (kTerms != kTermLogp) {
    RowGradient rest = row;
    const float taken = upstream_logp * scale.inverse;
    rest.constant += kIsPlain<kTerms> ? divide(taken, sum) : taken;
    rest.correction = rest.constant * kLn2;
    return through_cap<kSoftcap>(value, x, scale) +
           column_gradient<kTerms, kSoftcap>(x, rest, scale);
  }
  return through_cap<kSoftcap>(value, x, scale);
}

/// A column that one of several ids points at: `gain` is the sum of their
/// upstream gradients, in id order.
template <int kTerms, bool kSoftcap>
LOGPJIT_DEVICE float repeated_target_gradient(float x, float gain,
                                              const RowGradient& row,
                                              const RowScale& scale) {
  return through_cap<kSoftcap>(gain * scale.inverse, x, scale) +
         column_gradient<kTerms, kSoftcap>(x, row, scale);
}

}  // namespace logpjit::device
