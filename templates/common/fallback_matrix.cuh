// Rows whose element type is known at run time.
#pragma once

#include "common/arguments.cuh"
#include "common/dtype.cuh"

namespace logpjit::device {

template <typename T>
LOGPJIT_DEVICE bool is_word_aligned(const T* pointer) {
  return (reinterpret_cast<u64>(pointer) & 15) == 0;
}

/// A row of fp32, bf16 or fp16 in memory.
template <typename T>
struct TypedRow {
  /// Eight columns from `first` on; masked from `vocab` on.
  LOGPJIT_DEVICE static void load(const void* row, i64 first, i64 vocab,
                                  float (&x)[kGroup]) {
    const T* from = static_cast<const T*>(row) + first;
    if (first + kGroup <= vocab && is_word_aligned(from)) {
      LOGPJIT_UNROLL
      for (int w = 0; w < kGroupWords<T>; ++w) {
        const Word word = reinterpret_cast<const Word*>(from)[w];
        LOGPJIT_UNROLL
        for (int e = 0; e < kWordElements<T>; ++e) {
          x[w * kWordElements<T> + e] = element<T>(word, e);
        }
      }
      return;
    }
    LOGPJIT_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      x[i] = first + i < vocab ? widen(from[i]) : -infinity();
    }
  }

  /// `kCount` whole groups, `step` columns apart: all are loaded before one is
  /// unpacked.
  template <int kCount>
  LOGPJIT_DEVICE static void load_groups(const void* row, i64 first, i64 step,
                                         float (&x)[kCount][kGroup]) {
    const T* from = static_cast<const T*>(row) + first;
    if (is_word_aligned(from)) {
      Word raw[kCount][kGroupWords<T>];
      LOGPJIT_UNROLL
      for (int g = 0; g < kCount; ++g) {
        LOGPJIT_UNROLL
        for (int w = 0; w < kGroupWords<T>; ++w) {
          raw[g][w] = reinterpret_cast<const Word*>(from + g * step)[w];
        }
      }
      LOGPJIT_UNROLL
      for (int g = 0; g < kCount; ++g) {
        LOGPJIT_UNROLL
        for (int i = 0; i < kGroup; ++i) {
          x[g][i] =
              element<T>(raw[g][i / kWordElements<T>], i % kWordElements<T>);
        }
      }
      return;
    }
    LOGPJIT_UNROLL
    for (int g = 0; g < kCount; ++g) {
      LOGPJIT_UNROLL
      for (int i = 0; i < kGroup; ++i) x[g][i] = widen(from[g * step + i]);
    }
  }

  /// Rounds once.
  LOGPJIT_DEVICE static void store(void* row, i64 first, i64 vocab,
                                   const float (&x)[kGroup]) {
    T* to = static_cast<T*>(row) + first;
    if (first + kGroup <= vocab && is_word_aligned(to)) {
      LOGPJIT_UNROLL
      for (int w = 0; w < kGroupWords<T>; ++w) {
        reinterpret_cast<Word*>(to)[w] = pack<T>(x + w * kWordElements<T>);
      }
      return;
    }
    LOGPJIT_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      if (first + i < vocab) to[i] = narrow<T>(x[i]);
    }
  }
};

/// Calls `body.template operator()<T>()` with the type of that number.
template <typename Body>
LOGPJIT_DEVICE void with_float_type(int dtype, Body&& body) {
  if (dtype == kBf16) {
    body.template operator()<bf16>();
  } else if (dtype == kFp16) {
    body.template operator()<fp16>();
  } else {
    body.template operator()<fp32>();
  }
}

/// One row, read and written by groups or by element.
struct AnyTypeRow {
  void* data;
  int dtype;

  LOGPJIT_DEVICE void load(i64 first, i64 vocab, float (&x)[kGroup]) const {
    with_float_type(
        dtype, [&]<typename T>() { TypedRow<T>::load(data, first, vocab, x); });
  }
  template <int kCount>
  LOGPJIT_DEVICE void load_groups(i64 first, i64 step,
                                  float (&x)[kCount][kGroup]) const {
    with_float_type(dtype, [&]<typename T>() {
      TypedRow<T>::load_groups(data, first, step, x);
    });
  }
  /// Rounds once; adds to what is there when accumulating.
  LOGPJIT_DEVICE void store(i64 first, i64 vocab, bool accumulate,
                            float (&x)[kGroup]) const {
    if (accumulate) {
      float old[kGroup];
      load(first, vocab, old);
      LOGPJIT_UNROLL
      for (int i = 0; i < kGroup; ++i) x[i] = old[i] + x[i];
    }
    with_float_type(dtype, [&]<typename T>() {
      TypedRow<T>::store(data, first, vocab, x);
    });
  }
  LOGPJIT_DEVICE float at(i64 column) const {
    float value = 0.0f;
    with_float_type(dtype, [&]<typename T>() {
      value = widen(static_cast<const T*>(data)[column]);
    });
    return value;
  }
  LOGPJIT_DEVICE void put(i64 column, float value) const {
    with_float_type(dtype, [&]<typename T>() {
      static_cast<T*>(data)[column] = narrow<T>(value);
    });
  }
};

/// Row `offset` elements into a matrix.
LOGPJIT_DEVICE AnyTypeRow any_type_row(const void* matrix, int dtype,
                                       i64 offset) {
  const i64 bytes = offset * (dtype == kFp32 ? 4 : 2);
  return {const_cast<unsigned char*>(static_cast<const unsigned char*>(matrix) +
                                     bytes),
          dtype};
}

}  // namespace logpjit::device
