// The gradients of KL(A || B) of one pair of rows.
#pragma once

#include "common/fallback_block.cuh"
#include "common/kl_gradient_row.cuh"

namespace logpjit::device {

template <bool kSoftcap>
struct FallbackKlGradient {
  const FallbackCall& call;
  const KlGradientArguments& args;
  int thread;

  LOGPJIT_DEVICE void run(const FallbackPlace& place) const {
    if (!place.listed) return;
    const AnyTypeRow of_a =
        gradient_row(args.gradient_a, args.gradient_a_rows, call.logits, place);
    const AnyTypeRow of_b =
        gradient_row(args.gradient_b, args.gradient_b_rows, call.other, place);
    const i64 n = place.row;
    const float upstream = row_scalar(args.upstream, place.position);
    const bool live = upstream != 0.0f && args.max_a[n] != -infinity() &&
                      args.max_b[n] != -infinity();
    if (call.accumulate == 0) {
      const i64 first = live ? call.vocab : 0;
      clear(of_a, first, args.gradient_a_columns);
      clear(of_b, first, args.gradient_b_columns);
    }
    if (live) write(place, upstream, of_a, of_b);
  }

  /// No data when that gradient is not wanted.
  LOGPJIT_DEVICE AnyTypeRow gradient_row(void* gradient,
                                         const RowsArgument& rows, int dtype,
                                         const FallbackPlace& place) const {
    if (gradient == nullptr) return {nullptr, dtype};
    return any_type_row(gradient, dtype, element_offset(rows, place.storage));
  }

  LOGPJIT_DEVICE void clear(const AnyTypeRow& gradient, i64 first,
                            i64 columns) const {
    if (gradient.data == nullptr) return;
    for (i64 j = first + thread; j < columns; j += kFallbackBlock) {
      gradient.put(j, 0.0f);
    }
  }

  LOGPJIT_DEVICE void write(const FallbackPlace& place, float upstream,
                            const AnyTypeRow& of_a,
                            const AnyTypeRow& of_b) const {
    const i64 n = place.row;
    const RowScale scale_a =
        row_scale<true, kSoftcap>(args.a.transform, place.position);
    const RowScale scale_b =
        row_scale<true, kSoftcap>(args.b.transform, place.position);
    const KlGradientRow row =
        kl_gradient_row(args.max_a[n], args.sum_a[n], args.max_b[n],
                        args.sum_b[n], args.kl[n], upstream, scale_a, scale_b);
    const AnyTypeRow a = any_type_row(
        args.a.logits, call.logits, element_offset(args.a.rows, place.storage));
    const AnyTypeRow b = any_type_row(
        args.b.logits, call.other, element_offset(args.b.rows, place.storage));
    const bool accumulate = call.accumulate != 0;
    for_each_pair(
        a, b, call.vocab, thread,
        [&](i64 first, float(&x)[kGroup], float(&y)[kGroup]) {
          float of[kGroup];
          LOGPJIT_UNROLL
          for (int i = 0; i < kGroup; ++i) {
            x[i] = capped<kSoftcap>(x[i], scale_a);
            y[i] = capped<kSoftcap>(y[i], scale_b);
          }
          if (of_a.data != nullptr) {
            LOGPJIT_UNROLL
            for (int i = 0; i < kGroup; ++i) {
              of[i] = through_cap<kSoftcap>(
                  gradient_of_a<true>(x[i], y[i], row, scale_a, scale_b), x[i],
                  scale_a);
            }
            of_a.store(first, call.vocab, accumulate, of);
          }
          if (of_b.data == nullptr) return;
          LOGPJIT_UNROLL
          for (int i = 0; i < kGroup; ++i) {
            of[i] = through_cap<kSoftcap>(
                gradient_of_b(x[i], y[i], row, scale_a, scale_b), y[i],
                scale_b);
          }
          of_b.store(first, call.vocab, accumulate, of);
        });
  }
};

}  // namespace logpjit::device
