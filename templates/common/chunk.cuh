// Elementwise work on a chunk of one row: 16-byte words in address order.
#pragma once

#include "common/dtype.cuh"
#include "common/layout.cuh"

namespace logpjit::device {

/// `kBlock * kFlight` consecutive words of a gradient row and the logits that
/// belong to them. Words are aligned addresses; the row's first and last may be
/// shared with its neighbours, and are then written element by element. Loads
/// are issued `kFlight` at a time; what an iteration loads it alone overwrites,
/// so the gradient may lie over the logits.
template <typename T, i64 kVocab, bool kAligned, bool kAccumulate, int kBlock,
          int kFlight>
struct Chunk {
  static constexpr int kElements = kWordElements<T>;

  const T* row;
  T* gradient;
  int number;  ///< of the chunk within the row
  int thread;

  /// Elements between the gradient's first word and its first element.
  LOGPJIT_DEVICE int offset() const {
    if constexpr (kAligned) {
      return 0;
    } else {
      return static_cast<int>((reinterpret_cast<u64>(gradient) & 15) /
                              sizeof(T));
    }
  }
  /// Whether logits and gradient lie alike, so that words match words.
  LOGPJIT_DEVICE bool matches() const {
    return kAligned ||
           ((reinterpret_cast<u64>(gradient) ^ reinterpret_cast<u64>(row)) &
            15) == 0;
  }

  LOGPJIT_DEVICE i64 first_column() const {
    return static_cast<i64>(number) * (kBlock * kFlight * kElements) - offset();
  }
  LOGPJIT_DEVICE i64 end_column() const {
    return first_column() + kBlock * kFlight * kElements;
  }
  /// First column of this thread's word `i`.
  LOGPJIT_DEVICE i64 column_of(int i) const {
    return first_column() + static_cast<i64>(i * kBlock + thread) * kElements;
  }
  LOGPJIT_DEVICE static bool is_whole(i64 column) {
    return (kAligned || column >= 0) && column + kElements <= kVocab;
  }

  LOGPJIT_DEVICE void put(i64 column, float old, float value) const {
    gradient[column] = narrow<T>(kAccumulate ? old + value : value);
  }
  LOGPJIT_DEVICE float old_at(i64 column) const {
    return kAccumulate ? widen(gradient[column]) : 0.0f;
  }

  /// Zeros, or nothing when accumulating.
  LOGPJIT_DEVICE void clear() const {
    if constexpr (kAccumulate) return;
    const CachePolicy policy = evict_policy();
    LOGPJIT_NO_UNROLL
    for (int i = 0; i < kFlight; ++i) {
      const i64 column = column_of(i);
      if (is_whole(column)) {
        store_with(policy, reinterpret_cast<Word*>(gradient + column),
                   Word{0, 0, 0, 0});
      } else {
        for_each_column(column, [&](i64 j) { gradient[j] = narrow<T>(0.0f); });
      }
    }
  }

  /// Zeros in the columns that do not count, [kVocab, columns).
  LOGPJIT_DEVICE void clear_padding(i64 columns) const {
    if constexpr (kAccumulate) return;
    for (i64 j = kVocab + thread; j < columns; j += kBlock) {
      gradient[j] = narrow<T>(0.0f);
    }
  }

  template <typename Body>
  LOGPJIT_DEVICE static void for_each_column(i64 column, Body&& body) {
    LOGPJIT_NO_UNROLL
    for (int e = 0; e < kElements; ++e) {
      if (column + e >= 0 && column + e < kVocab) body(column + e);
    }
  }

  /// gradient = of_column(logit), column by column; `meanwhile` is called while
  /// the logits are on their way, before anything is stored.
  template <typename Meanwhile, typename OfColumn>
  LOGPJIT_DEVICE void write_columns(Meanwhile&& meanwhile,
                                    OfColumn&& of_column) const {
    const CachePolicy keep = keep_policy();
    const bool match = matches();
    Word raw[kFlight];
    LOGPJIT_UNROLL
    for (int i = 0; i < kFlight; ++i) {
      const i64 column = column_of(i);
      if (match && is_whole(column)) {
        raw[i] = load_with(keep, reinterpret_cast<const Word*>(row + column));
      }
    }
    meanwhile();
    const CachePolicy evict = evict_policy();
    LOGPJIT_UNROLL
    for (int i = 0; i < kFlight; ++i) {
      const i64 column = column_of(i);
      if (match && is_whole(column))
        write_word(column, raw[i], evict, of_column);
    }
    LOGPJIT_NO_UNROLL
    for (int i = 0; i < kFlight; ++i) {
      const i64 column = column_of(i);
      if (match && is_whole(column)) continue;
      for_each_column(
          column, [&](i64 j) { put(j, old_at(j), of_column(widen(row[j]))); });
    }
  }

  template <typename OfColumn>
  LOGPJIT_DEVICE void write_word(i64 column, const Word& raw,
                                 CachePolicy policy,
                                 OfColumn&& of_column) const {
    Word* to = reinterpret_cast<Word*>(gradient + column);
    Word old{};
    if constexpr (kAccumulate) old = *to;
    float values[kElements];
    LOGPJIT_UNROLL
    for (int e = 0; e < kElements; ++e) {
      values[e] = of_column(element<T>(raw, e));
      if constexpr (kAccumulate) values[e] += element<T>(old, e);
    }
    store_with(policy, to, pack<T>(values));
  }

  /// The same; then the thread that wrote column `target` writes it once more,
  /// as of_target(logit): cheaper than a select for every column.
  template <typename OfColumn, typename OfTarget>
  LOGPJIT_DEVICE void write(OfColumn&& of_column, i64 target,
                            OfTarget&& of_target) const {
    const i64 place = (target - first_column()) / kElements;
    const bool mine = target >= first_column() && target >= 0 &&
                      target < end_column() && place % kBlock == thread;
    float logit = 0.0f;
    float old = 0.0f;
    if (mine) {
      logit = widen(row[target]);
      old = old_at(target);
    }
    write_columns([] {}, of_column);
    if (mine) put(target, old, of_target(logit));
  }
};

}  // namespace logpjit::device
