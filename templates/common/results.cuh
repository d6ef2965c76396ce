// From a row's final state to its outputs.
#pragma once

#include "common/layout.cuh"
#include "common/state.cuh"
#include "common/targets.cuh"

namespace logpjit::device {

/// A row whose maximum is not finite has no distribution: all columns masked,
/// or a NaN or +inf among the logits. Its values are NaN.
LOGPJIT_DEVICE bool is_undefined(float max) { return max - max != 0.0f; }

/// (x - max) / T - log(sum): never x - (max + log(sum)).
LOGPJIT_DEVICE float log_probability(float logit, float max, float log_sum,
                                     const RowScale& scale) {
  return (logit - max) * scale.inverse - log_sum;
}

LOGPJIT_DEVICE float entropy_of(const RowState& state, float log_sum) {
  const float mean = divide(state.weight * kLn2, state.sum);
  return is_undefined(state.max) ? not_a_number() : log_sum - mean;
}
LOGPJIT_DEVICE float squares_of(const RowState& state) {
  const float ratio = divide(state.square, state.sum * state.sum);
  return is_undefined(state.max) ? not_a_number() : ratio;
}

/// Column of the row's maximum, which lies in `state.group`.
template <typename Logit, i64 kVocab, bool kSoftcap>
LOGPJIT_DEVICE i64 find_column(const Logit* row, const RowState& state,
                               const RowScale& scale) {
  LOGPJIT_NO_UNROLL
  for (int i = 0; i < kGroup; ++i) {
    const i64 column = static_cast<i64>(state.group) * kGroup + i;
    if (column < kVocab &&
        capped<kSoftcap>(widen(row[column]), scale) == state.max) {
      return column;
    }
  }
  return -1;
}

/// One thread writes what does not depend on ids.
template <typename Logit, i64 kVocab, int kTerms, bool kSoftcap>
LOGPJIT_DEVICE void write_values(const RowStatisticsArguments& args, i64 n,
                                 const Logit* row, const RowState& state,
                                 float log_sum, const RowScale& scale) {
  if (args.max != nullptr) args.max[n] = state.max;
  if (args.sum != nullptr) args.sum[n] = state.sum;
  const bool undefined = is_undefined(state.max);
  if constexpr ((kTerms & kTermEntropy) != 0) {
    args.entropy[n] = entropy_of(state, log_sum);
  }
  if constexpr ((kTerms & kTermLse) != 0) {
    if (args.lse != nullptr) {
      args.lse[n] =
          undefined ? not_a_number() : state.max * scale.inverse + log_sum;
    }
  }
  if constexpr ((kTerms & kTermSquares) != 0) {
    args.squares[n] = squares_of(state);
  }
  if constexpr ((kTerms & kTermArgmax) != 0) {
    args.argmax[n] =
        undefined ? -1
                  : find_column<Logit, kVocab, kSoftcap>(row, state, scale);
  }
}

/// Counts an ignored id, unless it is the one that callers ignore with.
LOGPJIT_DEVICE void count_out_of_range(const RowStatisticsArguments& args,
                                       i64 id) {
  if (id != args.ignore_id && args.out_of_range != nullptr) {
    add_relaxed(args.out_of_range, 1);
  }
}

/// Calls `body(k)` for the ids k of a row that a warp's thread has; a row has
/// one id unless there are several.
template <bool kManyIds, typename Body>
LOGPJIT_DEVICE void for_each_id(i64 ids_per_row, int thread, const Body& body) {
  if constexpr (kManyIds) {
    LOGPJIT_NO_UNROLL
    for (i64 k = thread; k < ids_per_row; k += 32) body(k);
  } else {
    if (thread == 0) body(0);
  }
}

/// Writes the log-probability of the row's id k, whose logit is `raw` if it is
/// live.
template <i64 kVocab, bool kManyIds, bool kSoftcap, typename Logit>
LOGPJIT_DEVICE void write_logp(const RowStatisticsArguments& args, i64 n, i64 k,
                               i64 id, Logit raw, float max, float log_sum,
                               const RowScale& scale) {
  float value = 0.0f;
  if (is_live<kVocab>(id)) {
    const float logit = capped<kSoftcap>(widen(raw), scale);
    value = is_undefined(max) ? not_a_number()
                              : log_probability(logit, max, log_sum, scale);
  } else {
    count_out_of_range(args, id);
  }
  args.logp[(kManyIds ? n * args.ids_per_row : n) + k] = value;
}

/// Warp 0 writes everything about row `n`; `target` is its only id.
template <typename Logit, typename Id, i64 kVocab, int kTerms, bool kManyIds,
          bool kSoftcap, typename Target>
LOGPJIT_DEVICE void write_row(const RowStatisticsArguments& args, i64 n,
                              const Logit* row, const Target& target,
                              const RowState& state, const RowScale& scale,
                              RowPosition at, int thread) {
  const float log_sum = log_accurate(state.sum);
  if (thread == 0) {
    write_values<Logit, kVocab, kTerms, kSoftcap>(args, n, row, state, log_sum,
                                                  scale);
  }
  if constexpr ((kTerms & kTermLogp) != 0) {
    for_each_id<kManyIds>(args.ids_per_row, thread, [&](i64 k) {
      i64 id = target.id;
      Logit raw = target.logit;
      if constexpr (kManyIds) {
        id = load_id<Id>(args.ids, at, k);
        if (is_live<kVocab>(id)) raw = row[id];
      }
      write_logp<kVocab, kManyIds, kSoftcap>(args, n, k, id, raw, state.max,
                                             log_sum, scale);
    });
  }
}

/// A row that is not read: no live id, or an index out of range.
template <typename Id, i64 kVocab, int kTerms, bool kManyIds = true>
LOGPJIT_DEVICE void write_ignored(const RowStatisticsArguments& args, i64 n,
                                  RowPosition at, int thread) {
  if (thread == 0) {
    if (args.max != nullptr) args.max[n] = -infinity();
    if (args.sum != nullptr) args.sum[n] = 0.0f;
    if constexpr ((kTerms & kTermEntropy) != 0) args.entropy[n] = 0.0f;
    if constexpr ((kTerms & kTermLse) != 0) {
      if (args.lse != nullptr) args.lse[n] = 0.0f;
    }
    if constexpr ((kTerms & kTermSquares) != 0) args.squares[n] = 0.0f;
    if constexpr ((kTerms & kTermArgmax) != 0) args.argmax[n] = -1;
  }
  if constexpr ((kTerms & kTermLogp) != 0) {
    for_each_id<kManyIds>(args.ids_per_row, thread, [&](i64 k) {
      const i64 id = load_id<Id>(args.ids, at, k);
      if (!is_live<kVocab>(id)) count_out_of_range(args, id);
      args.logp[(kManyIds ? n * args.ids_per_row : n) + k] = 0.0f;
    });
  }
}

}  // namespace logpjit::device
