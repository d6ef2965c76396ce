// One rank's parts of the vocab-parallel operations, without communication.
//
// statistics -> (any all-gather of `partials`) -> merge; the gradient is local.
// They run one by one with hand-made shards on one device, or around the
// caller's own collective; VocabParallel puts them together.
//
// Calls are those of operations.hpp with the rank's columns as logits [N, W]
// (or [B, S, W]), W the width of the rank's range, and gradients of the same
// shape. Everything else is of the whole vocabulary and equal on all ranks:
// ids, temperatures, outputs, saved statistics, upstream gradients. `vocab` is
// 0 or that of the shards. A rank without columns passes logits of width 0.
// `argmax` and `options` are not available. No gradient needs communication,
// provided all ranks pass the same upstream gradients.
#pragma once

#include <cstddef>
#include <cstdint>

#include "logpjit/operations.hpp"
#include "logpjit/vocab_shards.hpp"

namespace logpjit {

/// Which part of the vocabulary a call is about. `shards` must outlive the
/// call.
struct ShardPlace {
  const VocabShards* shards = nullptr;
  int rank = 0;
  MergeOrder order = MergeOrder::kRanks;
};

/// Device memory that the parts hand over, in bytes.
struct ShardSizes {
  /// One rank's partial results, a multiple of 16: 32 + 8 to 20 a row, and 4
  /// more an id up to 16 ids a row.
  std::size_t partials = 0;
  /// Picked logits when there are more than 16 ids a row, else 0: words that
  /// every rank fills and that are then added up over the ranks, as integers.
  /// Each word has one owner, hence the sum is exact.
  std::size_t words = 0;
};

struct ShardBuffers {
  /// Statistics: this rank's partial results. Merge: those of all ranks, in
  /// rank order, one right after the other. At a multiple of 16 bytes.
  void* partials = nullptr;
  void* words = nullptr;
  /// Merge: a 32-bit word in device memory. Becomes 1 + the first rank that did
  /// not make the same call (the outputs are NaN then), else stays as it is.
  void* disagreement = nullptr;
};

LOGPJIT_API ShardSizes shard_sizes(Runtime& runtime, const RowForward& call,
                                   const ShardPlace& place);
LOGPJIT_API ShardSizes shard_sizes(Runtime& runtime, const KlForward& call,
                                   const ShardPlace& place);

/// One read of the rank's logits; writes `buffers`, no output.
LOGPJIT_API void shard_statistics(Runtime& runtime, const RowForward& call,
                                  const ShardPlace& place,
                                  const ShardBuffers& buffers,
                                  CUstream_st* stream = nullptr);
LOGPJIT_API void shard_statistics(Runtime& runtime, const KlForward& call,
                                  const ShardPlace& place,
                                  const ShardBuffers& buffers,
                                  CUstream_st* stream = nullptr);

/// The call's outputs, the same on every rank.
LOGPJIT_API void shard_merge(Runtime& runtime, const RowForward& call,
                             const ShardPlace& place,
                             const ShardBuffers& buffers,
                             CUstream_st* stream = nullptr);
LOGPJIT_API void shard_merge(Runtime& runtime, const KlForward& call,
                             const ShardPlace& place,
                             const ShardBuffers& buffers,
                             CUstream_st* stream = nullptr);

/// The rank's columns of the gradient; padding gets zeros.
LOGPJIT_API void shard_gradient(Runtime& runtime, const RowBackward& call,
                                const ShardPlace& place,
                                CUstream_st* stream = nullptr);
LOGPJIT_API void shard_gradient(Runtime& runtime, const KlBackward& call,
                                const ShardPlace& place,
                                CUstream_st* stream = nullptr);

}  // namespace logpjit
