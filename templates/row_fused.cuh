// Forward and gradient in one launch: rows stay on chip between the two.
#pragma once

#include "common/fused_long.cuh"

namespace logpjit::device {

/// Values, statistics and the gradient of each row from one read and one write,
/// when the upstream gradient is known beforehand. Persistent blocks; warps
/// split by role: one fills a ring of row pieces, forward warps run ahead,
/// gradient warps follow and free the ring. With no group of gradient warps
/// (long rows) the forward warps do both.
template <typename Logit, typename Id, i64 kVocab, int kTerms, bool kAligned,
          int kRows, bool kTemperature, bool kSoftcap, int kForwardThreads,
          int kGradientThreads, int kGradientGroups, int kCluster, int kSlots>
LOGPJIT_SPEC(Logit, "fp32 bf16 fp16")
LOGPJIT_SPEC(Id, "int32 int64")
LOGPJIT_SPEC(kVocab, "64..1073741824")
LOGPJIT_SPEC(kTerms, "1..15")
LOGPJIT_SPEC(kAligned, "0 1")
LOGPJIT_SPEC(kRows, "0..2")
LOGPJIT_SPEC(kTemperature, "0 1")
LOGPJIT_SPEC(kSoftcap, "0 1")
LOGPJIT_TUNE(kForwardThreads, "128 256 512")
LOGPJIT_TUNE(kGradientThreads, "128 256 512")
LOGPJIT_TUNE(kGradientGroups, "0 1 2")
LOGPJIT_TUNE(kCluster, "1 2")
LOGPJIT_TUNE(kSlots, "2..64")
LOGPJIT_CLUSTER_KERNEL(kForwardThreads + kGradientThreads * kGradientGroups +
                           32,
                       1)
row_fused(const RowFusedArguments args) {
  using Shape = FusedShape<Logit, Id, kVocab, kTerms, kAligned, kRows,
                           kTemperature, kSoftcap, kForwardThreads,
                           kGradientThreads, kGradientGroups, kCluster, kSlots>;
  constexpr int kProducer =
      kForwardThreads + kGradientThreads * kGradientGroups;
  const int rank = kCluster == 1 ? 0 : cluster_rank();
  const int thread = thread_index();
  const FusedBarriers<Shape> barriers;
  barriers.prepare(thread);
  const i64 first = block_index() / kCluster;
  const i64 stride = grid_blocks() / kCluster;
  if (thread < kForwardThreads) {
    if constexpr (Shape::kLong) {
      run_long_rows<Shape>(args, barriers, rank, thread, first, stride);
    } else {
      run_forward<Shape>(args, barriers, rank, thread, first, stride);
    }
  } else if (thread < kProducer) {
    if constexpr (!Shape::kLong) {
      run_gradient<Shape>(args, barriers, rank, thread - kForwardThreads, first,
                          stride);
    }
  } else if (thread == kProducer) {
    run_producer<Shape>(args, barriers, rank, first, stride);
  }
  if constexpr (kCluster > 1) sync_cluster();
}

}  // namespace logpjit::device
