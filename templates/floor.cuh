// What memory allows: plain kernels that read, or read and write, and nothing
// else. Every speed is given as a ratio to these, measured in the same run.
#pragma once

#include "common/arguments.cuh"
#include "common/dtype.cuh"

namespace logpjit::device {

/// Word `i` of this thread's share of a block's chunk.
template <int kBlock, int kFlight>
LOGPJIT_DEVICE i64 floor_word(int i) {
  return block_index() * (kBlock * kFlight) + i * kBlock + thread_index();
}

/// Reads every word once. The output is written only if all bits of all words
/// of a thread are set, which keeps the reads alive.
template <int kBlock, int kFlight>
LOGPJIT_TUNE(kBlock, "128 256 512 1024")
LOGPJIT_TUNE(kFlight, "1 2 4 8")
LOGPJIT_KERNEL(kBlock, 1)
floor_read(const FloorArguments args) {
  u32 all = 0xffffffffu;
  LOGPJIT_UNROLL
  for (int i = 0; i < kFlight; ++i) {
    const i64 at = floor_word<kBlock, kFlight>(i);
    if (at >= args.words) continue;
    const Word word = load_stream(static_cast<const Word*>(args.first) + at);
    all &= word.x & word.y & word.z & word.w;
  }
  if (all == 0xffffffffu && args.output != nullptr) {
    *static_cast<u32*>(args.output) = all;
  }
}

/// Reads every word once and writes it once, in address order.
template <int kBlock, int kFlight>
LOGPJIT_TUNE(kBlock, "128 256 512 1024")
LOGPJIT_TUNE(kFlight, "1 2 4 8")
LOGPJIT_KERNEL(kBlock, 1)
floor_copy(const FloorArguments args) {
  const CachePolicy keep = keep_policy();
  const CachePolicy evict = evict_policy();
  Word words[kFlight];
  LOGPJIT_UNROLL
  for (int i = 0; i < kFlight; ++i) {
    const i64 at = floor_word<kBlock, kFlight>(i);
    if (at < args.words) {
      words[i] = load_with(keep, static_cast<const Word*>(args.first) + at);
    }
  }
  LOGPJIT_UNROLL
  for (int i = 0; i < kFlight; ++i) {
    const i64 at = floor_word<kBlock, kFlight>(i);
    if (at < args.words) {
      store_with(evict, static_cast<Word*>(args.output) + at, words[i]);
    }
  }
}

/// Reads two inputs and writes one output.
template <int kBlock, int kFlight>
LOGPJIT_TUNE(kBlock, "128 256 512 1024")
LOGPJIT_TUNE(kFlight, "1 2 4 8")
LOGPJIT_KERNEL(kBlock, 1)
floor_triad(const FloorArguments args) {
  const CachePolicy keep = keep_policy();
  const CachePolicy evict = evict_policy();
  Word sums[kFlight];
  LOGPJIT_UNROLL
  for (int i = 0; i < kFlight; ++i) {
    const i64 at = floor_word<kBlock, kFlight>(i);
    if (at >= args.words) continue;
    const Word a = load_with(keep, static_cast<const Word*>(args.first) + at);
    const Word b = load_with(keep, static_cast<const Word*>(args.second) + at);
    sums[i] = Word{a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w};
  }
  LOGPJIT_UNROLL
  for (int i = 0; i < kFlight; ++i) {
    const i64 at = floor_word<kBlock, kFlight>(i);
    if (at < args.words) {
      store_with(evict, static_cast<Word*>(args.output) + at, sums[i]);
    }
  }
}

}  // namespace logpjit::device
