// Values and statistics of one row in two reads.
#pragma once

#include "common/fallback_block.cuh"
#include "common/results.cuh"

namespace logpjit::device {

/// `kHeavy`: more than the maximum and the sum is wanted. Both forms give the
/// same bits of those.
template <bool kSoftcap, bool kHeavy>
struct FallbackStatistics {
  const FallbackCall& call;
  const RowStatisticsArguments& args;
  int thread;

  /// What the second read finds about the maximum.
  struct Sums {
    float sum;
    float weight;  ///< base-2 exponents times terms
    float square;
    i64 column;  ///< the first that holds the maximum
  };

  LOGPJIT_DEVICE void run(const FallbackPlace& place) const {
    if (!place.listed || (call.terms == kTermLogp && !has_live_id(place))) {
      write_ignored(place);
      return;
    }
    const RowScale scale =
        row_scale<true, kSoftcap>(args.transform, place.position);
    const AnyTypeRow row = any_type_row(
        args.logits, call.logits, element_offset(args.rows, place.storage));
    const float max = find_max(row, scale);
    // A row without a distribution has no sums: none, or NaN.
    Sums sums{max == -infinity() ? 0.0f : not_a_number(), 0.0f, 0.0f, -1};
    if (!is_undefined(max)) sums = find_sums(row, max, scale);
    if (thread == 0) write_values(place.row, max, sums, scale);
    if ((call.terms & kTermLogp) != 0) {
      write_logp(place, row, max, log_accurate(sums.sum), scale);
    }
  }

  LOGPJIT_DEVICE i64 id_of(const FallbackPlace& place, i64 k) const {
    return any_type_id(args.ids, call.ids, place.position, k);
  }
  LOGPJIT_DEVICE bool is_live_id(i64 id) const {
    return id >= 0 && id < call.vocab;
  }

  LOGPJIT_DEVICE bool has_live_id(const FallbackPlace& place) const {
    float live[1] = {0.0f};
    for (i64 k = thread; k < args.ids_per_row; k += kFallbackBlock) {
      if (is_live_id(id_of(place, k))) live[0] = 1.0f;
    }
    fold_block(live, thread,
               [](int, float a, float b) { return max_number(a, b); });
    return live[0] != 0.0f;
  }

  LOGPJIT_DEVICE float find_max(const AnyTypeRow& row,
                                const RowScale& scale) const {
    float max[1] = {-infinity()};
    for_each_group<kSoftcap ? 1 : 2>(
        row, call.vocab, thread, [&](i64, const float(&x)[kGroup]) {
          LOGPJIT_UNROLL
          for (int i = 0; i < kGroup; ++i) {
            max[0] = max_nan(max[0], capped<kSoftcap>(x[i], scale));
          }
        });
    fold_block(max, thread,
               [](int, float a, float b) { return max_nan(a, b); });
    return max[0];
  }

  LOGPJIT_DEVICE Sums find_sums(const AnyTypeRow& row, float max,
                                const RowScale& scale) const {
    CarriedSum sum;
    CarriedSum weight;
    CarriedSum square;
    double column = 0x1p62;
    for_each_group<kHeavy ? 1 : 2>(
        row, call.vocab, thread, [&](i64 first, const float(&x)[kGroup]) {
          float terms[kGroup];
          float weights[kGroup];
          float squares[kGroup];
          LOGPJIT_UNROLL
          for (int i = 0; i < kGroup; ++i) {
            const float logit = capped<kSoftcap>(x[i], scale);
            // Finite where the term is 0, so that products with it
            // are 0.
            const float exponent =
                max_number((logit - max) * scale.to_log2, -512.0f);
            terms[i] = exp2_approx(exponent);
            if constexpr (kHeavy) {
              weights[i] = terms[i] * exponent;
              squares[i] = terms[i] * terms[i];
              const auto here = static_cast<double>(first + i);
              if (logit == max && here < column) column = here;
            }
          }
          sum.add(sum_of_group(terms));
          if constexpr (kHeavy) {
            weight.add(sum_of_group(weights));
            square.add(sum_of_group(squares));
          }
        });
    if constexpr (!kHeavy) {
      double all[1] = {sum.value()};
      fold_block(all, thread, [](int, double a, double b) { return a + b; });
      return {static_cast<float>(all[0]), 0.0f, 0.0f, -1};
    } else {
      double all[4] = {sum.value(), weight.value(), square.value(), column};
      fold_block(all, thread, [](int i, double a, double b) {
        if (i < 3) return a + b;
        return a < b ? a : b;
      });
      return {static_cast<float>(all[0]), static_cast<float>(all[1]),
              static_cast<float>(all[2]), static_cast<i64>(all[3])};
    }
  }

  LOGPJIT_DEVICE void write_values(i64 n, float max, const Sums& sums,
                                   const RowScale& scale) const {
    const bool undefined = is_undefined(max);
    const float log_sum = log_accurate(sums.sum);
    if (args.max != nullptr) args.max[n] = max;
    if (args.sum != nullptr) args.sum[n] = sums.sum;
    if (args.entropy != nullptr) {
      const float mean = divide(sums.weight * kLn2, sums.sum);
      args.entropy[n] = undefined ? not_a_number() : log_sum - mean;
    }
    if (args.lse != nullptr) {
      args.lse[n] = undefined ? not_a_number() : max * scale.inverse + log_sum;
    }
    if (args.squares != nullptr) {
      const float ratio = divide(sums.square, sums.sum * sums.sum);
      args.squares[n] = undefined ? not_a_number() : ratio;
    }
    if (args.argmax != nullptr) args.argmax[n] = undefined ? -1 : sums.column;
  }

  LOGPJIT_DEVICE void write_logp(const FallbackPlace& place,
                                 const AnyTypeRow& row, float max,
                                 float log_sum, const RowScale& scale) const {
    for (i64 k = thread; k < args.ids_per_row; k += kFallbackBlock) {
      const i64 id = id_of(place, k);
      float value = 0.0f;
      if (is_live_id(id)) {
        const float logit = capped<kSoftcap>(row.at(id), scale);
        value = is_undefined(max) ? not_a_number()
                                  : log_probability(logit, max, log_sum, scale);
      } else {
        count_out_of_range(args, id);
      }
      args.logp[place.row * args.ids_per_row + k] = value;
    }
  }

  /// A row that is not read: no live id, or an index out of range.
  LOGPJIT_DEVICE void write_ignored(const FallbackPlace& place) const {
    const i64 n = place.row;
    if (thread == 0) {
      if (args.max != nullptr) args.max[n] = -infinity();
      if (args.sum != nullptr) args.sum[n] = 0.0f;
      if (args.entropy != nullptr) args.entropy[n] = 0.0f;
      if (args.lse != nullptr) args.lse[n] = 0.0f;
      if (args.squares != nullptr) args.squares[n] = 0.0f;
      if (args.argmax != nullptr) args.argmax[n] = -1;
    }
    if ((call.terms & kTermLogp) == 0) return;
    for (i64 k = thread; k < args.ids_per_row; k += kFallbackBlock) {
      const i64 id = id_of(place, k);
      if (!is_live_id(id)) count_out_of_range(args, id);
      args.logp[n * args.ids_per_row + k] = 0.0f;
    }
  }
};

}  // namespace logpjit::device
