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
};

/// Groups that may be loaded as words: an unaligned row leaves out its last
/// full group, whose second word may end beyond the tensor.
template <bool kAligned>
constexpr i32 vector_groups(i64 vocab) {
  const i64 full = vocab / kGroup;
  return static_cast<i32>(kAligned || full == 0 ? full : full - 1);
}

/// The row's last columns, one by one; masked beyond the row's end.
template <typename T, i64 kVocab>
LOGPJIT_DEVICE void load_columns(const T* row, i32 group, float (&x)[kGroup]) {
  LOGPJIT_UNROLL
  for (int i = 0; i < kGroup; ++i) {
    const i64 column = static_cast<i64>(group) * kGroup + i;
    x[i] = column < kVocab ? widen(row[column]) : -infinity();
  }
}

/// A group of the row's last tiles, `group` < group_count(kVocab).
template <typename T, bool kAligned, i64 kVocab>
LOGPJIT_DEVICE void load_end_group(const T* row, i32 group,
                                   float (&x)[kGroup]) {
  if (kAligned && group < vector_groups<kAligned>(kVocab)) {
    const GroupReader<T, 0> reader{reinterpret_cast<const Word*>(row)};
    Word raw[GroupReader<T, 0>::kWords];
    reader.load(group, raw);
    GroupReader<T, 0>::unpack(raw, x);
  } else {
    load_columns<T, kVocab>(row, group, x);
  }
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
