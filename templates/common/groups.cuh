// Reading one group of eight columns, wherever its row starts in memory.
#pragma once

#include "common/dtype.cuh"

namespace logpjit::device {

/// Groups of a row whose first element lies `kOffset` elements into a 16-byte
/// word. Group g then spans the words g and g + 1 of the row; both are loaded
/// (the second is a neighbour's first, hence in L1) and the eight elements are
/// fixed positions: nothing is shifted at run time.
template <typename T, int kOffset>
struct GroupReader {
  using RawPeak = Peak<T>;
  static constexpr int kWords = kGroupWords<T> + (kOffset != 0 ? 1 : 0);

  const Word* words;  ///< the aligned word that holds the row's first element

  LOGPJIT_DEVICE void load(i32 group, Word (&raw)[kWords]) const {
    const Word* from = words + static_cast<i64>(group) * kGroupWords<T>;
    LOGPJIT_UNROLL
    for (int i = 0; i < kWords; ++i) {
      raw[i] =
          kOffset == 0 ? load_stream(from + i) : load_shared_line(from + i);
    }
  }

  LOGPJIT_DEVICE static void unpack(const Word (&raw)[kWords],
                                    float (&x)[kGroup]) {
    LOGPJIT_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      const int at = i + kOffset;
      x[i] = element<T>(raw[at / kWordElements<T>], at % kWordElements<T>);
    }
  }

  /// Shows the group's elements to `peak`, in any order. At an odd offset the
  /// first and the last one, alone in their parts, make a pair.
  LOGPJIT_DEVICE static void look(const Word (&raw)[kWords], Peak<T>& peak) {
    constexpr int kParts = kGroup / kPartElements<T>;
    constexpr int kFirst = kOffset / kPartElements<T>;
    LOGPJIT_UNROLL
    for (int i = 0; i < kParts; ++i) {
      u32 part = part_of(raw[(kFirst + i) / 4], (kFirst + i) % 4);
      if (i == 0 && kOffset % kPartElements<T> != 0) {
        constexpr int kLast = kFirst + kParts;
        part =
            shift_pair(part, part_of(raw[kLast / 4 % kWords], kLast % 4), 16);
      }
      peak.take(part);
    }
  }

  /// The row's last columns, one by one, as if loaded; masked beyond V.
  template <i64 kVocab>
  LOGPJIT_DEVICE static void load_columns(const T* row, i32 group,
                                          Word (&raw)[kWords]) {
    constexpr int kPer = kPartElements<T>;
    u32 parts[4 * kWords];
    LOGPJIT_UNROLL
    for (int i = 0; i < 4 * kWords; ++i) {
      parts[i] = 0;
      LOGPJIT_UNROLL
      for (int e = 0; e < kPer; ++e) {
        const int place = i * kPer + e - kOffset;
        const i64 column = static_cast<i64>(group) * kGroup + place;
        const bool exists = place >= 0 && place < kGroup && column < kVocab;
        const u32 bits = exists ? element_bits(row[column])
                                : kMaskedPart<T> >> (32 - 32 / kPer);
        parts[i] |= bits << (32 / kPer * e);
      }
    }
    LOGPJIT_UNROLL
    for (int w = 0; w < kWords; ++w) {
      raw[w] = Word{parts[4 * w], parts[4 * w + 1], parts[4 * w + 2],
                    parts[4 * w + 3]};
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
  using Reader = GroupReader<T, 0>;
  Word raw[Reader::kWords];
  Reader::template load_columns<kVocab>(row, group, raw);
  Reader::unpack(raw, x);
}

/// Calls `body.template operator()<offset>()` with the offset of `row` within
/// its 16-byte word as a constant: one branch a row.
template <typename T, bool kAligned, typename Body>
LOGPJIT_DEVICE void with_offset(const T* row, Body&& body) {
  if constexpr (kAligned) {
    body.template operator()<0>();
  } else {
    const int offset =
        static_cast<int>((reinterpret_cast<u64>(row) & 15) / sizeof(T));
    switch (offset) {
      case 0:
        return body.template operator()<0>();
      case 1:
        return body.template operator()<1>();
      case 2:
        return body.template operator()<2>();
      case 3:
        return body.template operator()<3>();
      default:
        break;
    }
    if constexpr (sizeof(T) == 2) {
      switch (offset) {
        case 4:
          return body.template operator()<4>();
        case 5:
          return body.template operator()<5>();
        case 6:
          return body.template operator()<6>();
        default:
          return body.template operator()<7>();
      }
    }
  }
}

}  // namespace logpjit::device
