// Upstream gradients of a row, and whether anything has to be done for it.
#pragma once

#include "common/gradient.cuh"
#include "common/layout.cuh"

namespace logpjit::device {

/// What a gradient kernel loads of a row before any logit.
struct RowInputs {
  i64 id;  ///< the row's id when it has one; -1 otherwise
  Upstream upstream;
  float max;
  float sum;
  float entropy;
  float squares;
};

/// What follows from it.
struct GradientTask {
  Upstream upstream;
  i64 target;  ///< the live id when there is one per row, else -1
  bool live;   ///< false: the gradient row is zeros and is not read
};

/// A row's ids and upstream gradients in shared memory, in id order.
struct IdTable {
  i32* columns;  ///< -1 for an ignored id
  float* gains;  ///< 0 for an ignored id
};
LOGPJIT_DEVICE IdTable id_table() {
  return {shared_memory<i32>(kIdTableAt),
          shared_memory<float>(kIdTableAt + kMostIds * 4)};
}

/// Fills the table. Every thread of the block calls it.
template <typename Id, i64 kVocab, int kBlock>
LOGPJIT_DEVICE void load_ids(const VectorArgument& ids,
                             const VectorArgument& gradients, int count,
                             RowPosition at, int thread) {
  const IdTable table = id_table();
  const float* upstream =
      static_cast<const float*>(gradients.data) + element_offset(gradients, at);
  constexpr int kRounds = kMostIds / kBlock;
  i64 id[kRounds];
  float gain[kRounds];
  LOGPJIT_UNROLL
  for (int i = 0; i < kRounds; ++i) {
    const int k = i * kBlock + thread;
    if (k >= count) continue;
    id[i] = load_id<Id>(ids, at, k);
    gain[i] = upstream[k * gradients.item_stride];
  }
  LOGPJIT_UNROLL
  for (int i = 0; i < kRounds; ++i) {
    const int k = i * kBlock + thread;
    if (k >= count) continue;
    const bool live = is_live<kVocab>(id[i]);
    table.columns[k] = live ? static_cast<i32>(id[i]) : -1;
    table.gains[k] = live ? gain[i] : 0.0f;
  }
  sync_threads();
}

/// Sum of the table's gains, and whether any is not 0. The order depends on K
/// alone: lane l of a warp adds k = l, l + 32, ..., then the lanes fold. Every
/// warp does the same.
LOGPJIT_DEVICE bool sum_upstream(int count, int thread, float& total) {
  const IdTable table = id_table();
  float sum = 0.0f;
  bool any = false;
  for (int k = thread % 32; k < count; k += 32) {
    any = any || table.gains[k] != 0.0f;
    sum += table.gains[k];
  }
  LOGPJIT_UNROLL
  for (int mask = 1; mask < 32; mask *= 2) sum += shuffle_xor(sum, mask);
  total = sum;
  return ballot(any) != 0;
}

LOGPJIT_DEVICE float scalar_or_zero(const VectorArgument& vector,
                                    RowPosition at) {
  return vector.data != nullptr ? row_scalar(vector, at) : 0.0f;
}

/// A row is live when any of its coefficients is not 0; NaN is not.
template <int kTerms>
LOGPJIT_DEVICE GradientTask with_row_terms(GradientTask task) {
  if constexpr ((kTerms & kTermEntropy) != 0) {
    task.live = task.live || task.upstream.entropy != 0.0f;
  }
  if constexpr ((kTerms & kTermLse) != 0) {
    task.live = task.live || task.upstream.lse != 0.0f;
  }
  if constexpr ((kTerms & kTermSquares) != 0) {
    task.live = task.live || task.upstream.squares != 0.0f;
  }
  return task;
}

/// Ids and upstream gradients of the row at `at`; several ids are left to
/// `gradient_task`.
template <typename Id, int kTerms, bool kManyIds>
LOGPJIT_DEVICE RowInputs load_upstream(const VectorArgument& ids,
                                       const UpstreamArgument& upstream,
                                       RowPosition at) {
  RowInputs row{};
  row.id = -1;
  if constexpr ((kTerms & kTermLogp) != 0 && !kManyIds) {
    row.id = load_id<Id>(ids, at, 0);
    row.upstream.logp = row_scalar(upstream.logp, at);
  }
  if constexpr ((kTerms & kTermEntropy) != 0) {
    row.upstream.entropy = scalar_or_zero(upstream.entropy, at);
  }
  if constexpr ((kTerms & kTermLse) != 0) {
    row.upstream.lse = scalar_or_zero(upstream.lse, at);
  }
  if constexpr ((kTerms & kTermSquares) != 0) {
    row.upstream.squares = scalar_or_zero(upstream.squares, at);
  }
  return row;
}

/// Everything for row `n` of a backward.
template <typename Id, int kTerms, bool kManyIds>
LOGPJIT_DEVICE RowInputs load_inputs(const RowGradientArguments& args, i64 n,
                                     RowPosition at) {
  RowInputs row =
      load_upstream<Id, kTerms, kManyIds>(args.ids, args.upstream, at);
  row.max = args.max[n];
  row.sum = args.sum[n];
  if constexpr ((kTerms & kTermEntropy) != 0) row.entropy = args.entropy[n];
  if constexpr ((kTerms & kTermSquares) != 0) row.squares = args.squares[n];
  return row;
}

/// An upstream gradient of an ignored id counts for nothing, whatever it is.
/// Several ids are in the table.
template <i64 kVocab, int kTerms, bool kManyIds>
LOGPJIT_DEVICE GradientTask gradient_task(const RowInputs& row, int ids_per_row,
                                          int thread) {
  GradientTask task{row.upstream, -1, false};
  if constexpr ((kTerms & kTermLogp) != 0) {
    if constexpr (kManyIds) {
      task.live = sum_upstream(ids_per_row, thread, task.upstream.logp);
    } else if (is_live<kVocab>(row.id) && row.upstream.logp != 0.0f) {
      task.target = row.id;
      task.live = true;
    } else {
      task.upstream.logp = 0.0f;
    }
  }
  return with_row_terms<kTerms>(task);
}

}  // namespace logpjit::device
