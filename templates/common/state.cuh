// A partial sweep over a row: maximum, sums about it, and how two merge.
#pragma once

#include "common/dtype.cuh"
#include "common/transform.cuh"

namespace logpjit::device {

/// Bits of the terms template parameter, as in logpjit::Terms.
constexpr int kTermLogp = 1;
constexpr int kTermEntropy = 2;
constexpr int kTermLse = 4;
constexpr int kTermSquares = 8;
constexpr int kTermArgmax = 16;

/// Over the live columns seen so far, x the capped logit, c = log2(e)/T:
///   max    the largest x; -inf when there is none, NaN when any is NaN
///   sum    of 2^((x - max) c)
///   weight of 2^((x - max) c) (x - max) c                 (entropy)
///   square of 4^((x - max) c)                             (sum of p^2)
///   group  number of the first group that holds max       (argmax)
/// Members that a term set does not need are never read, hence not computed.
struct RowState {
  float max;
  float sum;
  float weight;
  float square;
  i32 group;
};

LOGPJIT_DEVICE RowState empty_state() {
  return {-infinity(), 0.0f, 0.0f, 0.0f, -1};
}

/// What to subtract: the maximum, or the lowest finite number while every
/// column is masked, so that -inf minus it is -inf. A NaN among the logits
/// makes its own term NaN, hence the sum.
LOGPJIT_DEVICE float anchor(float max) {
  return max_number(max, -0x1.fffffep+127f);
}

/// The exponent below which 2^x is 0: products with it are finite. NaN becomes
/// the floor; 2^NaN, which multiplies it, is still NaN.
constexpr float kExponentFloor = -512.0f;
LOGPJIT_DEVICE float bounded_exponent(float exponent) {
  return max_number(exponent, kExponentFloor);
}

/// The state about a maximum that is no lower.
template <int kTerms>
LOGPJIT_DEVICE void raise(RowState& state, float max, float to_log2) {
  const float exponent = (state.max - anchor(max)) * to_log2;
  const float factor = exp2_centered(exponent);
  if constexpr ((kTerms & kTermEntropy) != 0) {
    state.weight =
        factor * fma(bounded_exponent(exponent), state.sum, state.weight);
  }
  if constexpr ((kTerms & kTermSquares) != 0) {
    state.square *= factor * factor;
  }
  state.sum *= factor;
  state.max = max;
}

/// The pairwise sum of eight terms.
LOGPJIT_DEVICE float sum_of(const float (&x)[kGroup]) {
  return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/// Sum of eight products.
LOGPJIT_DEVICE float dot_of(const float (&x)[kGroup],
                            const float (&y)[kGroup]) {
  const float a = fma(x[1], y[1], x[0] * y[0]);
  const float b = fma(x[3], y[3], x[2] * y[2]);
  const float c = fma(x[5], y[5], x[4] * y[4]);
  const float d = fma(x[7], y[7], x[6] * y[6]);
  return (a + b) + (c + d);
}

/// The largest of eight.
LOGPJIT_DEVICE float max_of(const float (&x)[kGroup]) {
  const float low = max_nan(max_nan(x[0], x[1]), max_nan(x[2], x[3]));
  const float high = max_nan(max_nan(x[4], x[5]), max_nan(x[6], x[7]));
  return max_nan(low, high);
}

/// Adds one group of capped logits to a state whose maximum is no lower than
/// theirs; `base` is its anchor. The order of operations is fixed here and
/// nowhere else, so no launch configuration can change a bit.
template <int kTerms>
LOGPJIT_DEVICE void add(RowState& state, const float (&x)[kGroup], float base,
                        float to_log2) {
  const auto exponent = [&](int i) { return (x[i] - base) * to_log2; };
  const auto term = [&](int i) { return exp2_approx(exponent(i)); };
  const float terms[kGroup] = {term(0), term(1), term(2), term(3),
                               term(4), term(5), term(6), term(7)};
  state.sum += sum_of(terms);
  if constexpr ((kTerms & kTermEntropy) != 0) {
    const auto bounded = [&](int i) { return bounded_exponent(exponent(i)); };
    const float exponents[kGroup] = {bounded(0), bounded(1), bounded(2),
                                     bounded(3), bounded(4), bounded(5),
                                     bounded(6), bounded(7)};
    state.weight += dot_of(terms, exponents);
  }
  if constexpr ((kTerms & kTermSquares) != 0) {
    state.square += dot_of(terms, terms);
  }
}

/// Both states as one: the lower one is rescaled. Symmetric bit for bit: two
/// threads that hold the same pair in either order get the same result.
template <int kTerms>
LOGPJIT_DEVICE RowState merge(const RowState& a, const RowState& b,
                              float to_log2) {
  const bool a_leads = a.max >= b.max;
  RowState high = a_leads ? a : b;
  RowState low = a_leads ? b : a;
  const float max = max_nan(a.max, b.max);
  if constexpr ((kTerms & kTermArgmax) != 0) {
    const i32 first = a.group < b.group ? a.group : b.group;
    high.group = a.max == b.max ? first : high.group;
  }
  raise<kTerms>(low, max, to_log2);
  high.max = max;
  high.sum += low.sum;
  high.weight += low.weight;
  high.square += low.square;
  return high;
}

}  // namespace logpjit::device
