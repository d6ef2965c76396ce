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

/// What to subtract: the maximum, or 0 while every column is masked.
LOGPJIT_DEVICE float anchor(float max) {
  return max == -infinity() ? 0.0f : max;
}

/// The exponent below which 2^x is 0: products with it are finite.
constexpr float kExponentFloor = -512.0f;
LOGPJIT_DEVICE float bounded_exponent(float exponent) {
  return exponent < kExponentFloor ? kExponentFloor : exponent;
}

/// The state's sums about a new anchor, `factor` = 2^exponent.
template <int kTerms>
LOGPJIT_DEVICE void rescale(RowState& state, float exponent) {
  const float factor = exp2_approx(exponent);
  if constexpr ((kTerms & kTermEntropy) != 0) {
    state.weight =
        factor * fma(bounded_exponent(exponent), state.sum, state.weight);
  }
  if constexpr ((kTerms & kTermSquares) != 0) {
    state.square *= factor * factor;
  }
  state.sum *= factor;
}

/// The pairwise sum of eight terms.
LOGPJIT_DEVICE float sum_of(const float (&x)[kGroup]) {
  return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/// Takes one group of capped logits. The order of operations is fixed here and
/// nowhere else, so no launch configuration can change a bit.
template <int kTerms>
LOGPJIT_DEVICE void take(RowState& state, const float (&x)[kGroup],
                         i32 group, float to_log2) {
  const float low =
      max_nan(max_nan(x[0], x[1]), max_nan(x[2], x[3]));
  const float high =
      max_nan(max_nan(x[4], x[5]), max_nan(x[6], x[7]));
  const float top = max_nan(low, high);
  if constexpr ((kTerms & kTermArgmax) != 0) {
    if (top > state.max) state.group = group;
  }
  const float max = max_nan(state.max, top);
  const float base = anchor(max);
  rescale<kTerms>(state, (state.max - base) * to_log2);
  state.max = max;
  float terms[kGroup];
  float weights[kGroup];
  float squares[kGroup];
  LOGPJIT_UNROLL
  for (int i = 0; i < kGroup; ++i) {
    const float exponent = (x[i] - base) * to_log2;
    terms[i] = exp2_approx(exponent);
    weights[i] = terms[i] * bounded_exponent(exponent);
    squares[i] = terms[i] * terms[i];
  }
  state.sum += sum_of(terms);
  if constexpr ((kTerms & kTermEntropy) != 0) state.weight += sum_of(weights);
  if constexpr ((kTerms & kTermSquares) != 0) state.square += sum_of(squares);
}

/// Both states as one. Symmetric bit for bit: two threads that hold the same
/// pair in either order get the same result.
template <int kTerms>
LOGPJIT_DEVICE RowState merge(RowState a, RowState b, float to_log2) {
  RowState both;
  both.max = max_nan(a.max, b.max);
  both.group = -1;
  if constexpr ((kTerms & kTermArgmax) != 0) {
    const i32 first = a.group < b.group ? a.group : b.group;
    both.group = a.max > b.max ? a.group : b.max > a.max ? b.group : first;
  }
  const float base = anchor(both.max);
  rescale<kTerms>(a, (a.max - base) * to_log2);
  rescale<kTerms>(b, (b.max - base) * to_log2);
  both.sum = a.sum + b.sum;
  both.weight = a.weight + b.weight;
  both.square = a.square + b.square;
  return both;
}

}  // namespace logpjit::device
