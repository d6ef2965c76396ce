// Groups of a row that starts anywhere, by the offset as a constant: nothing is
// shifted at run time, but every offset has code of its own. For kernels that
// are short of issue slots.
#pragma once

#include "common/groups.cuh"

namespace logpjit::device {

/// A word's 4-byte part.
LOGPJIT_DEVICE u32 part_of(const Word& word, int index) {
  const u32 parts[4] = {word.x, word.y, word.z, word.w};
  return parts[index];
}

/// Groups of a row whose first element lies `kOffset` elements into a 16-byte
/// word. Group g then spans the words g and g + 1 of the row, and the eight
/// elements are fixed positions.
template <typename T, int kOffset>
struct OffsetGroup {
  using RawPeak = Peak<T>;
  static constexpr int kWords = kGroupWords<T> + (kOffset != 0 ? 1 : 0);

  /// Group `group` from memory; `words` holds the row's first element. The
  /// second word is a neighbour's first, hence in L1.
  LOGPJIT_DEVICE static void load(const Word* words, i32 group,
                                  Word (&raw)[kWords]) {
    const Word* from = words + static_cast<i64>(group) * kGroupWords<T>;
    LOGPJIT_UNROLL
    for (int i = 0; i < kWords; ++i) raw[i] = load_shared_line(from + i);
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
};

/// An aligned row needs none of this.
template <typename T>
struct OffsetGroup<T, 0> : Group<T> {
  LOGPJIT_DEVICE static void load(const Word* words, i32 group,
                                  Word (&raw)[kGroupWords<T>]) {
    const Word* from = words + static_cast<i64>(group) * kGroupWords<T>;
    LOGPJIT_UNROLL
    for (int i = 0; i < kGroupWords<T>; ++i) {
      raw[i] = Group<T>::load_word(from + i);
    }
  }
};

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
