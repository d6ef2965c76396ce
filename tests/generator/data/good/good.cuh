// Everything that a template may do.
#pragma once

/* Not an include, nor a forbidden word:
#include <vector>
__syncthreads(); asm("nop");
*/
#include "common/second.cuh"
#include "common/first.cuh"

namespace logpjit::device {

constexpr const char* kText = "__syncthreads(); extern \"C\" asm";

/// Every type of field. Member functions are no fields.
struct GoodArguments {
  const void* logits;
  Rows rows;
  u16 small;
  bool flag;
  double wide;
  Scale scale;
  u64* counter;
  i64 total() const { return rows.stride; }
};

/**
 * Does e.g. this, version 1.5 of it,
 * over two lines. And this is no summary.
 */
template <typename Logit, typename Id = int, i64 kVocab = 1, bool kAligned,
          short kTMADepth, int kBlock, unsigned kMinBlocks>
LOGPJIT_TUNE(kMinBlocks, "1..8")
LOGPJIT_SPEC(Logit, "fp32 bf16 fp16")
LOGPJIT_SPEC(Id, "int32")
LOGPJIT_SPEC(kVocab, "-9223372036854775808..9223372036854775807")
LOGPJIT_SPEC(kAligned, "0 1")
LOGPJIT_TUNE(kTMADepth, " -1  0 1 ")
LOGPJIT_TUNE(kBlock, "128 256 512")
LOGPJIT_KERNEL(kBlock * 1, kMinBlocks)
good_kernel(const GoodArguments args) {
  float* shared = shared_memory<float>(0);
  sync_threads();
  if constexpr (kAligned) {
    const Logit* row = static_cast<const Logit*>(args.logits);
    shared[thread_index()] = scaled(row[kVocab - 1], args.scale);
  }
}

inline namespace v1 {
//! Second.
template <int kBlock>
LOGPJIT_TUNE(kBlock, "32")
LOGPJIT_CLUSTER_KERNEL(kBlock, 1) second_kernel(Rows) {}
}  // namespace v1

}  // namespace logpjit::device
