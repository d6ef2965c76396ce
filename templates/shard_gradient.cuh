// Backward on one rank's columns.
#pragma once

#include "common/gradient_chunk.cuh"

namespace logpjit::device {

/// The columns of one rank of the gradient that row_gradient computes, from the
/// statistics of the whole row: ids count wherever they are, their one-hot part
/// is added by the owner. A rank without columns clears its rows.
template <typename Logit, typename Id, i64 kVocab, i64 kGlobal, int kTerms,
          bool kManyIds, bool kAligned, int kRows, bool kTemperature,
          bool kSoftcap, bool kAccumulate, int kBlock, int kMinBlocks,
          int kFlight>
LOGPJIT_SPEC(Logit, "fp32 bf16 fp16")
LOGPJIT_SPEC(Id, "int32 int64")
LOGPJIT_SPEC(kVocab, "1..1073741824")
LOGPJIT_SPEC(kGlobal, "1..1073741824")
LOGPJIT_SPEC(kTerms, "1..15")
LOGPJIT_SPEC(kManyIds, "0 1")
LOGPJIT_SPEC(kAligned, "0 1")
LOGPJIT_SPEC(kRows, "0..2")
LOGPJIT_SPEC(kTemperature, "0 1")
LOGPJIT_SPEC(kSoftcap, "0 1")
LOGPJIT_SPEC(kAccumulate, "0 1")
LOGPJIT_TUNE(kBlock, "128 256 512")
LOGPJIT_TUNE(kMinBlocks, "1..16")
LOGPJIT_TUNE(kFlight, "1..8")
LOGPJIT_KERNEL(kBlock, kMinBlocks)
shard_gradient(const ShardGradientArguments args) {
  constexpr int kChunks =
      gradient_chunks(kVocab, sizeof(Logit), kAligned,
                      has_hits(kManyIds, kTerms), kBlock * kFlight);
  const GradientChunk<Logit, Id, kVocab, kTerms, kManyIds, kAligned, kRows,
                      kTemperature, kSoftcap, kAccumulate, kBlock, kFlight,
                      kGlobal>
      work{args.values, thread_index(), args.begin, args.begin != args.end};
  const i64 n = block_index() / kChunks;
  work.run(n, static_cast<int>(block_index() - n * kChunks), kChunks);
}

}  // namespace logpjit::device
