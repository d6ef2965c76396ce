// One group of eight columns, as the words that hold it.
#pragma once

#include "common/dtype.cuh"

namespace logpjit::device {

/// A group's words as numbers. Nothing here is a loop over elements: what a
/// compiler need not unroll and simplify, it compiles faster.
template <typename T>
struct Group {
  using RawPeak = Peak<T>;
  static constexpr int kWords = kGroupWords<T>;

  /// One of an aligned group's words. Two words are a sector of 32 bytes, which
  /// without L1 would be fetched for each of them: 3 % of the bandwidth.
  LOGPJIT_DEVICE static Word load_word(const Word* from) {
    return kWords == 1 ? load_stream(from) : load_shared_line(from);
  }

  LOGPJIT_DEVICE static void unpack(const Word (&raw)[kWords],
                                    float (&x)[kGroup]) {
    if constexpr (kWords == 1) {
      unpack_pair<T>(raw[0].x, x[0], x[1]);
      unpack_pair<T>(raw[0].y, x[2], x[3]);
      unpack_pair<T>(raw[0].z, x[4], x[5]);
      unpack_pair<T>(raw[0].w, x[6], x[7]);
    } else {
      x[0] = float_of(raw[0].x);
      x[1] = float_of(raw[0].y);
      x[2] = float_of(raw[0].z);
      x[3] = float_of(raw[0].w);
      x[4] = float_of(raw[1].x);
      x[5] = float_of(raw[1].y);
      x[6] = float_of(raw[1].z);
      x[7] = float_of(raw[1].w);
    }
  }

  /// Shows the group's elements to `peak`, in any order.
  LOGPJIT_DEVICE static void look(const Word (&raw)[kWords], Peak<T>& peak) {
    LOGPJIT_UNROLL
    for (int w = 0; w < kWords; ++w) {
      peak.take(raw[w].x);
      peak.take(raw[w].y);
      peak.take(raw[w].z);
      peak.take(raw[w].w);
    }
  }

  /// The row's last columns, one by one, as if loaded; masked beyond V.
  template <i64 kVocab>
  LOGPJIT_DEVICE static void load_columns(const T* row, i32 group,
                                          Word (&raw)[kWords]) {
    const T* from = row + static_cast<i64>(group) * kGroup;
    const i32 left = static_cast<i32>(kVocab) - group * kGroup;
    const auto bits = [&](int i) {
      return i < left ? element_bits(from[i]) : kMaskedElement<T>;
    };
    const auto pair = [&](int i) { return bits(i) | bits(i + 1) << 16; };
    if constexpr (kWords == 1) {
      raw[0] = Word{pair(0), pair(2), pair(4), pair(6)};
    } else {
      raw[0] = Word{bits(0), bits(1), bits(2), bits(3)};
      raw[1] = Word{bits(4), bits(5), bits(6), bits(7)};
    }
  }
};

/// Groups that may be loaded as words: an unaligned row leaves out its last
/// full group, whose second word may end beyond the tensor.
template <bool kAligned>
constexpr i32 vector_groups(i64 vocab) {
  const i64 full = vocab / kGroup;
  return static_cast<i32>(kAligned || full == 0 ? full : full - 1);
}

/// The row's last columns as numbers.
template <typename T, i64 kVocab>
LOGPJIT_DEVICE void load_columns(const T* row, i32 group, float (&x)[kGroup]) {
  Word raw[kGroupWords<T>];
  Group<T>::template load_columns<kVocab>(row, group, raw);
  Group<T>::unpack(raw, x);
}

}  // namespace logpjit::device
