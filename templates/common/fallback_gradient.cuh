// The gradient of one row: one read and one write.
#pragma once

#include "common/fallback_block.cuh"
#include "common/gradient.cuh"
#include "common/hits.cuh"

namespace logpjit::device {

template <bool kSoftcap>
struct FallbackGradient {
  /// Terms whose gradient is a multiple of p, and all of them: the two forms of
  /// the formula. Terms that are absent have coefficients of 0.
  static constexpr int kPlain = kTermLogp | kTermLse;
  static constexpr int kAll = kPlain | kTermEntropy | kTermSquares;

  const FallbackCall& call;
  const RowGradientArguments& args;
  int thread;

  LOGPJIT_DEVICE void run(const FallbackPlace& place) const {
    Upstream upstream{};
    const bool live = load_upstream(place, upstream);
    if (!place.listed) return;
    const AnyTypeRow gradient =
        any_type_row(args.gradient, call.logits,
                     element_offset(args.gradient_rows, place.storage));
    if (!live || args.max[place.row] == -infinity()) {
      if (call.accumulate == 0) clear(gradient, 0);
      return;
    }
    if (call.accumulate == 0) clear(gradient, call.vocab);
    if ((call.terms & (kTermEntropy | kTermSquares)) == 0) {
      write<kPlain>(place, gradient, upstream);
    } else {
      write<kAll>(place, gradient, upstream);
    }
  }

  LOGPJIT_DEVICE bool has_term(int term) const {
    return (call.terms & term) != 0;
  }

  /// The row's coefficients, and whether any is not 0; NaN is not. An upstream
  /// gradient of an ignored id counts for nothing, whatever it is.
  LOGPJIT_DEVICE bool load_upstream(const FallbackPlace& place,
                                    Upstream& upstream) const {
    double sums[2] = {0.0, 0.0};
    if (has_term(kTermLogp)) {
      for (i64 k = thread; k < args.ids_per_row; k += kFallbackBlock) {
        if (!is_live_id(id_of(place, k))) continue;
        const float gain = gain_of(place, k);
        sums[0] += static_cast<double>(gain);
        if (gain != 0.0f) sums[1] = 1.0;
      }
    }
    fold_block(sums, thread, [](int, double a, double b) { return a + b; });
    upstream.logp = static_cast<float>(sums[0]);
    bool live = sums[1] != 0.0;
    const auto add = [&](int term, const VectorArgument& vector, float& to) {
      if (!has_term(term)) return;
      to = row_scalar(vector, place.position);
      live = live || to != 0.0f;
    };
    add(kTermEntropy, args.upstream.entropy, upstream.entropy);
    add(kTermLse, args.upstream.lse, upstream.lse);
    add(kTermSquares, args.upstream.squares, upstream.squares);
    return live;
  }

  LOGPJIT_DEVICE i64 id_of(const FallbackPlace& place, i64 k) const {
    return any_type_id(args.ids, call.ids, place.position, k);
  }
  LOGPJIT_DEVICE bool is_live_id(i64 id) const {
    return id >= 0 && id < call.vocab;
  }
  LOGPJIT_DEVICE float gain_of(const FallbackPlace& place, i64 k) const {
    const VectorArgument& vector = args.upstream.logp;
    return static_cast<const float*>(
        vector.data)[element_offset(vector, place.position) +
                     k * vector.item_stride];
  }

  /// Zeros from column `first` to the end of the row's storage.
  LOGPJIT_DEVICE void clear(const AnyTypeRow& gradient, i64 first) const {
    for (i64 j = first + thread; j < args.gradient_columns;
         j += kFallbackBlock) {
      gradient.put(j, 0.0f);
    }
  }

  template <int kTerms>
  LOGPJIT_DEVICE void write(const FallbackPlace& place,
                            const AnyTypeRow& gradient,
                            const Upstream& upstream) const {
    const i64 n = place.row;
    const RowScale scale =
        row_scale<true, kSoftcap>(args.transform, place.position);
    const RowGradient coefficients = row_gradient_of<kTerms>(
        args.max[n], args.sum[n], has_term(kTermEntropy) ? args.entropy[n] : 0,
        has_term(kTermSquares) ? args.squares[n] : 0, upstream, scale);
    const AnyTypeRow row = any_type_row(
        args.logits, call.logits, element_offset(args.rows, place.storage));
    HitList hits = hit_list();
    // Before anything is stored: the gradient may lie over the logits.
    if (has_term(kTermLogp)) collect(hits, place, row, gradient);
    sync_threads();
    constexpr int kFlight = kSoftcap || kTerms == kAll ? 1 : 2;
    for_each_group<kFlight>(
        row, call.vocab, thread, [&](i64 first, float(&x)[kGroup]) {
          LOGPJIT_UNROLL
          for (int i = 0; i < kGroup; ++i) {
            x[i] = column_gradient<kTerms, kSoftcap>(
                capped<kSoftcap>(x[i], scale), coefficients, scale);
          }
          gradient.store(first, call.vocab, call.accumulate != 0, x);
        });
    sync_threads();
    for (int i = thread; i < hits.count; i += kFallbackBlock) {
      rewrite<kTerms>(hits, i, gradient, coefficients, scale, args.sum[n]);
    }
  }

  /// Id k is hit k; those that are not live have no column.
  LOGPJIT_DEVICE void collect(HitList& hits, const FallbackPlace& place,
                              const AnyTypeRow& row,
                              const AnyTypeRow& gradient) const {
    hits.count = static_cast<int>(args.ids_per_row);
    for (int k = thread; k < hits.count; k += kFallbackBlock) {
      const i64 id = id_of(place, k);
      if (is_live_id(id)) {
        hits.hits[k] = {static_cast<i32>(id), gain_of(place, k), row.at(id),
                        call.accumulate != 0 ? gradient.at(id) : 0.0f};
      } else {
        hits.hits[k].column = -1;
      }
    }
  }

  /// The column of hit `index`, once more, with its one-hot part.
  template <int kTerms>
  LOGPJIT_DEVICE void rewrite(const HitList& hits, int index,
                              const AnyTypeRow& gradient,
                              const RowGradient& coefficients,
                              const RowScale& scale, float sum) const {
    const Hit& hit = hits.hits[index];
    if (hit.column < 0) return;
    bool first;
    const float gain = sum_gains(hits, index, first);
    if (!first) return;
    const float x = capped<kSoftcap>(hit.logit, scale);
    const float value = hits.count == 1
                            ? target_gradient<kTerms, kSoftcap>(
                                  x, sum, gain, coefficients, scale)
                            : repeated_target_gradient<kTerms, kSoftcap>(
                                  x, gain, coefficients, scale);
    gradient.put(hit.column, call.accumulate != 0 ? hit.old + value : value);
  }
};

}  // namespace logpjit::device
