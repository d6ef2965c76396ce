// A chunk of the gradients of KL(A || B): groups of eight columns.
#pragma once

#include "common/any_offset.cuh"
#include "common/kl_gradient_row.cuh"

namespace logpjit::device {

template <typename A, typename B, i64 kVocab, bool kAligned, bool kTemperature,
          bool kSoftcap, bool kAccumulate, bool kGradA, bool kGradB, int kBlock,
          int kFlight>
struct KlWriter {
  static constexpr i32 kVectorGroups = vector_groups<kAligned>(kVocab);

  AnyRow<A, kAligned> a;
  AnyRow<B, kAligned> b;
  A* gradient_a;
  B* gradient_b;
  int number;  ///< of the chunk within the row
  int thread;

  LOGPJIT_DEVICE i32 group_of(int i) const {
    return (number * kFlight + i) * kBlock + thread;
  }

  /// Eight gradients of one side, rounded once each.
  template <typename T>
  LOGPJIT_DEVICE static void put(T* gradient, i32 group, float (&x)[kGroup],
                                 CachePolicy policy) {
    T* to = gradient + static_cast<i64>(group) * kGroup;
    if (kAligned && group < kVectorGroups) {
      LOGPJIT_UNROLL
      for (int w = 0; w < kGroupWords<T>; ++w) {
        Word* word = reinterpret_cast<Word*>(to) + w;
        if constexpr (kAccumulate) {
          LOGPJIT_UNROLL
          for (int e = 0; e < kWordElements<T>; ++e) {
            x[w * kWordElements<T> + e] += element<T>(*word, e);
          }
        }
        store_with(policy, word, pack<T>(x + w * kWordElements<T>));
      }
      return;
    }
    LOGPJIT_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      if (static_cast<i64>(group) * kGroup + i >= kVocab) continue;
      const float old = kAccumulate ? widen(to[i]) : 0.0f;
      to[i] = narrow<T>(kAccumulate ? old + x[i] : x[i]);
    }
  }

  LOGPJIT_DEVICE void clear() const {
    if constexpr (kAccumulate) return;
    const CachePolicy policy = evict_policy();
    LOGPJIT_NO_UNROLL
    for (int i = 0; i < kFlight; ++i) {
      if (group_of(i) >= group_count(kVocab)) continue;
      float zeros[kGroup] = {};
      if constexpr (kGradA) put(gradient_a, group_of(i), zeros, policy);
      if constexpr (kGradB) put(gradient_b, group_of(i), zeros, policy);
    }
  }

  LOGPJIT_DEVICE void clear_padding(i64 columns_a, i64 columns_b) const {
    if constexpr (kAccumulate) return;
    if constexpr (kGradA) {
      for (i64 j = kVocab + thread; j < columns_a; j += kBlock) {
        gradient_a[j] = narrow<A>(0.0f);
      }
    }
    if constexpr (kGradB) {
      for (i64 j = kVocab + thread; j < columns_b; j += kBlock) {
        gradient_b[j] = narrow<B>(0.0f);
      }
    }
  }

  LOGPJIT_DEVICE void write_group(i32 group, float (&x)[kGroup],
                                  float (&y)[kGroup], const KlGradientRow& row,
                                  const RowScale& scale_a,
                                  const RowScale& scale_b,
                                  CachePolicy policy) const {
    float of_a[kGroup];
    float of_b[kGroup];
    LOGPJIT_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      const float cap_a = capped<kSoftcap>(x[i], scale_a);
      const float cap_b = capped<kSoftcap>(y[i], scale_b);
      if constexpr (kGradA) {
        of_a[i] = through_cap<kSoftcap>(
            gradient_of_a<kTemperature>(cap_a, cap_b, row, scale_a, scale_b),
            cap_a, scale_a);
      }
      if constexpr (kGradB) {
        of_b[i] = through_cap<kSoftcap>(
            gradient_of_b(cap_a, cap_b, row, scale_a, scale_b), cap_b, scale_b);
      }
    }
    if constexpr (kGradA) put(gradient_a, group, of_a, policy);
    if constexpr (kGradB) put(gradient_b, group, of_b, policy);
  }

  LOGPJIT_DEVICE void write(const KlGradientRow& row, const RowScale& scale_a,
                            const RowScale& scale_b) const {
    Word raw_a[kFlight][AnyRow<A, kAligned>::kWords];
    Word raw_b[kFlight][AnyRow<B, kAligned>::kWords];
    LOGPJIT_UNROLL
    for (int i = 0; i < kFlight; ++i) {
      if (group_of(i) >= kVectorGroups) continue;
      a.load_kept(group_of(i), raw_a[i]);
      b.load_kept(group_of(i), raw_b[i]);
    }
    const CachePolicy policy = evict_policy();
    LOGPJIT_UNROLL
    for (int i = 0; i < kFlight; ++i) {
      float x[kGroup];
      float y[kGroup];
      if (group_of(i) >= kVectorGroups) continue;
      a.unpack(raw_a[i], x);
      b.unpack(raw_b[i], y);
      write_group(group_of(i), x, y, row, scale_a, scale_b, policy);
    }
    LOGPJIT_NO_UNROLL
    for (int i = 0; i < kFlight; ++i) {
      const i32 group = group_of(i);
      if (group < kVectorGroups || group >= group_count(kVocab)) continue;
      float x[kGroup];
      float y[kGroup];
      load_columns<A, kVocab>(a.row, group, x);
      load_columns<B, kVocab>(b.row, group, y);
      write_group(group, x, y, row, scale_a, scale_b, policy);
    }
  }
};

}  // namespace logpjit::device
