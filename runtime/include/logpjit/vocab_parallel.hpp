// Operations over a vocabulary that is spread over ranks: one all-gather.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "logpjit/call_options.hpp"
#include "logpjit/collective.hpp"
#include "logpjit/shard_operations.hpp"

namespace logpjit {

namespace runtime {
class ShardGroup;
}  // namespace runtime

struct VocabParallelOptions {
  MergeOrder order = MergeOrder::kRanks;
  /// Before anything else, ranks compare what they were called with: 512 bytes
  /// a rank on a stream of their own, waited for by the host while the
  /// statistics run. A rank whose call is refused says so, and all ranks throw.
  /// false, and whenever the stream is being captured: a digest of the call
  /// travels with the statistics alone, see `check`.
  bool compare_calls = true;
  /// Longest time the host waits for other ranks.
  double timeout_s = 60;
  /// Rows gathered at once, the same on all ranks; 0 = all of up to 131072,
  /// else 65536; in segment mode as many as 64 MiB hold.
  std::int64_t block_rows = 0;
};

/// One rank's view of a group. Every rank makes one with the same shards and
/// options and makes the same calls in the same order; see shard_operations.hpp
/// for the calls' shapes. Used by one thread at a time; `runtime` and
/// `collective` must outlive it.
///
/// Kernels are found or compiled at the first call of a kind, before anything
/// is sent. Later calls allocate nothing and may be captured in a CUDA graph
/// (make one call first). Many rows are worked on in blocks, whose gathering
/// and merging runs beside the next block's statistics.
///
/// A failure on one rank is Error on every rank that takes part: with the
/// message of the rank that refused, the first field that differs between
/// ranks, what NCCL said, or kTimeout.
class LOGPJIT_API VocabParallel {
 public:
  /// Error{kInvalidArgument} when the group has another size than the shards.
  VocabParallel(Runtime& runtime, Collective& collective, VocabShards shards,
                const VocabParallelOptions& options = {});
  ~VocabParallel();
  VocabParallel(const VocabParallel&) = delete;
  VocabParallel& operator=(const VocabParallel&) = delete;

  const VocabShards& shards() const;
  ShardPlace place() const;

  /// What `forward` needs for a call of this shape: ranks * shard_sizes(),
  /// or two blocks of rows in segment mode.
  std::size_t workspace_bytes(const RowForward& call) const;
  std::size_t workspace_bytes(const KlForward& call) const;

  /// One all-gather (and one sum of K words a row when K > 16). The workspace,
  /// at a multiple of 16 bytes, may be shared by calls on one stream.
  void forward(const RowForward& call, Workspace workspace,
               CUstream_st* stream = nullptr);
  void kl_forward(const KlForward& call, Workspace workspace,
                  CUstream_st* stream = nullptr);
  /// No communication.
  void backward(const RowBackward& call, CUstream_st* stream = nullptr);
  void kl_backward(const KlBackward& call, CUstream_st* stream = nullptr);

  /// Waits for the stream's work and throws what went wrong in it: ranks whose
  /// calls differed (their outputs are NaN), NCCL's failures, kTimeout.
  void check(CUstream_st* stream = nullptr);

 private:
  std::unique_ptr<runtime::ShardGroup> group_;
};

}  // namespace logpjit
