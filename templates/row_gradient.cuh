// Backward: a row's gradient from its saved statistics.
#pragma once

#include "common/gradient_chunk.cuh"

namespace logpjit::device {

/// Gradient of any sum of log-probabilities, entropy, log-sum-exp and sum of
/// p^2 with respect to the logits, from the saved (max, sum): one read and one
/// write in address order. A block takes a chunk of one row.
template <typename Logit, typename Id, i64 kVocab, int kTerms, bool kManyIds,
          bool kAligned, int kRows, bool kTemperature, bool kSoftcap,
          bool kAccumulate, int kBlock, int kMinBlocks, int kFlight>
LOGPJIT_SPEC(Logit, "fp32 bf16 fp16")
LOGPJIT_SPEC(Id, "int32 int64")
LOGPJIT_SPEC(kVocab, "1..1073741824")
LOGPJIT_SPEC(kTerms, "1..31")
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
row_gradient(const RowGradientArguments args) {
  constexpr int kChunks =
      gradient_chunks(kVocab, sizeof(Logit), kAligned,
                      has_hits(kManyIds, kTerms), kBlock * kFlight);
  const GradientChunk<Logit, Id, kVocab, kTerms, kManyIds, kAligned, kRows,
                      kTemperature, kSoftcap, kAccumulate, kBlock, kFlight>
      work{args, thread_index()};
  const i64 n = block_index() / kChunks;
  work.run(n, static_cast<int>(block_index() - n * kChunks), kChunks);
}

}  // namespace logpjit::device
