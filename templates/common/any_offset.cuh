// Reading groups of a row that starts anywhere, without a branch: for kernels
// where one body per offset would be too much code.
#pragma once

#include "common/groups.cuh"

namespace logpjit::device {

/// Moves every part `kStep` places down where `moves`.
template <int kStep, int kParts>
LOGPJIT_DEVICE void shift_parts(u32 (&parts)[kParts], bool moves) {
  LOGPJIT_UNROLL
  for (int i = 0; i + kStep < kParts; ++i) {
    parts[i] = moves ? parts[i + kStep] : parts[i];
  }
}

/// A group's own words from the words `raw` that hold it, the first column
/// `offset` elements in. Shifts whole words, then bits.
template <typename T>
LOGPJIT_DEVICE void realign(const Word (&raw)[kGroupWords<T> + 1], int offset,
                            Word (&words)[kGroupWords<T>]) {
  constexpr int kParts = 4 * (kGroupWords<T> + 1);
  u32 parts[kParts];
  LOGPJIT_UNROLL
  for (int w = 0; w <= kGroupWords<T>; ++w) {
    parts[4 * w] = raw[w].x;
    parts[4 * w + 1] = raw[w].y;
    parts[4 * w + 2] = raw[w].z;
    parts[4 * w + 3] = raw[w].w;
  }
  const int bits = offset * static_cast<int>(sizeof(T)) * 8;
  shift_parts<1>(parts, (bits & 32) != 0);
  shift_parts<2>(parts, (bits & 64) != 0);
  constexpr int kUsed = 4 * kGroupWords<T>;
  if constexpr (sizeof(T) == 2) {
    LOGPJIT_UNROLL
    for (int i = 0; i < kUsed; ++i) {
      parts[i] = shift_pair(parts[i], parts[i + 1], bits % 32);
    }
  }
  LOGPJIT_UNROLL
  for (int w = 0; w < kGroupWords<T>; ++w) {
    words[w] = Word{parts[4 * w], parts[4 * w + 1], parts[4 * w + 2],
                    parts[4 * w + 3]};
  }
}

/// A row and its offset within the aligned word that holds its first element.
template <typename T, bool kAligned>
struct AnyRow {
  static constexpr int kWords = kGroupWords<T> + (kAligned ? 0 : 1);

  const T* row;
  int offset;

  LOGPJIT_DEVICE explicit AnyRow(const T* start)
      : row(start),
        offset(kAligned ? 0
                        : static_cast<int>((reinterpret_cast<u64>(start) & 15) /
                                           sizeof(T))) {}

  LOGPJIT_DEVICE void load(i32 group, Word (&raw)[kWords]) const {
    const Word* from = reinterpret_cast<const Word*>(row - offset) +
                       static_cast<i64>(group) * kGroupWords<T>;
    LOGPJIT_UNROLL
    for (int i = 0; i < kWords; ++i) {
      raw[i] =
          kAligned ? Group<T>::load_word(from + i) : load_shared_line(from + i);
    }
  }
  /// The same for data that a gradient may lie over: kept in L2, and loaded
  /// afresh.
  LOGPJIT_DEVICE void load_kept(i32 group, Word (&raw)[kWords]) const {
    const Word* from = reinterpret_cast<const Word*>(row - offset) +
                       static_cast<i64>(group) * kGroupWords<T>;
    LOGPJIT_UNROLL
    for (int i = 0; i < kWords; ++i) {
      raw[i] = load_with(keep_policy(), from + i);
    }
  }
  /// The group's own words.
  LOGPJIT_DEVICE void align(const Word (&raw)[kWords],
                            Word (&words)[kGroupWords<T>]) const {
    if constexpr (kAligned) {
      LOGPJIT_UNROLL
      for (int w = 0; w < kWords; ++w) words[w] = raw[w];
    } else {
      realign<T>(raw, offset, words);
    }
  }
  LOGPJIT_DEVICE void unpack(const Word (&raw)[kWords],
                             float (&x)[kGroup]) const {
    Word words[kGroupWords<T>];
    align(raw, words);
    Group<T>::unpack(words, x);
  }
};

}  // namespace logpjit::device
