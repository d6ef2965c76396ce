// A lane's span: the tiles that it takes about one maximum.
#pragma once

#include "common/any_offset.cuh"
#include "common/layout.cuh"
#include "common/state.cuh"

namespace logpjit::device {

/// Whether a term or the cap needs every logit before the maximum is known.
template <int kTerms, bool kSoftcap>
constexpr bool kLooksAtLogits = kSoftcap || (kTerms & kTermArgmax) != 0;

template <bool kSoftcap, typename Reader>
LOGPJIT_DEVICE void unpack_capped(const Word (&raw)[Reader::kWords],
                                  float (&x)[kGroup], const RowScale& scale) {
  Reader::unpack(raw, x);
  if constexpr (kSoftcap) {
    LOGPJIT_UNROLL
    for (int i = 0; i < kGroup; ++i) x[i] = capped<kSoftcap>(x[i], scale);
  }
}

/// Raises the lane to the maximum of its `count` groups `group`,
/// `group` + kLanes, ...
template <int kTerms, bool kSoftcap, bool kFirst, typename Reader, int kTiles>
LOGPJIT_DEVICE void raise_over(RowState& lane,
                               const Word (&raw)[kTiles][Reader::kWords],
                               i32 group, int count, const RowScale& scale) {
  float top = lane.max;
  if constexpr (kLooksAtLogits<kTerms, kSoftcap>) {
    LOGPJIT_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      if (t >= count) continue;
      float x[kGroup];
      unpack_capped<kSoftcap, Reader>(raw[t], x, scale);
      const float most = max_of(x);
      if (most > top) lane.group = group + t * kLanes;
      top = max_nan(top, most);
    }
  } else {
    typename Reader::RawPeak peak;
    LOGPJIT_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      if (t >= count) continue;
      Reader::look(raw[t], peak);
    }
    top = max_nan(top, peak.value());
  }
  if constexpr (kFirst) {
    lane.max = top;
  } else {
    raise<kTerms>(lane, top, scale.to_log2);
  }
}

/// Takes the `count` groups of one span. `kFirst`: the lane is empty.
template <int kTerms, bool kSoftcap, bool kFirst, typename Reader, int kTiles>
LOGPJIT_DEVICE void take_span(RowState& lane,
                              const Word (&raw)[kTiles][Reader::kWords],
                              i32 group, int count, const RowScale& scale) {
  raise_over<kTerms, kSoftcap, kFirst, Reader>(lane, raw, group, count, scale);
  const float base = anchor(lane.max);
  LOGPJIT_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    if (t >= count) continue;
    float x[kGroup];
    unpack_capped<kSoftcap, Reader>(raw[t], x, scale);
    add<kTerms>(lane, x, base, scale.to_log2);
  }
}

/// How many groups from `group` on, kLanes apart, a row has: at most kTiles.
template <i64 kVocab, int kTiles>
LOGPJIT_DEVICE int existing_groups(i32 group) {
  int count = kTiles;
  LOGPJIT_UNROLL
  for (int t = kTiles - 1; t >= 0; --t) {
    if (group + t * kLanes >= group_count(kVocab)) count = t;
  }
  return count;
}

/// Group `ragged` of a span, with the row's last columns, one by one.
template <typename T, i64 kVocab, int kTiles>
LOGPJIT_DEVICE void load_ragged(const T* row, i32 group, int ragged,
                                Word (&raw)[kTiles][kGroupWords<T>]) {
  Word tail[kGroupWords<T>];
  Group<T>::template load_columns<kVocab>(row, group + ragged * kLanes, tail);
  LOGPJIT_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    if (t != ragged) continue;
    LOGPJIT_UNROLL
    for (int w = 0; w < kGroupWords<T>; ++w) raw[t][w] = tail[w];
  }
}

/// Says that every group of a span lies in whole tiles.
constexpr int kWholeSpan = 1 << 20;

/// The words of the `count` groups `group`, `group` + kLanes, ... The row's
/// last columns come one by one: a lane has at most one such group.
template <typename T, bool kAligned, i64 kVocab, int kTiles>
LOGPJIT_DEVICE void load_span(const AnyRow<T, kAligned>& row, i32 group,
                              int count, Word (&raw)[kTiles][kGroupWords<T>]) {
  constexpr i32 kVectorGroups = vector_groups<kAligned>(kVocab);
  Word words[kTiles][AnyRow<T, kAligned>::kWords];
  int ragged = -1;
  LOGPJIT_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    if (t >= count) continue;
    if (count == kWholeSpan || group + t * kLanes < kVectorGroups) {
      row.load(group + t * kLanes, words[t]);
    } else {
      ragged = t;
    }
  }
  LOGPJIT_UNROLL
  for (int t = 0; t < kTiles; ++t) row.align(words[t], raw[t]);
  if constexpr (kVectorGroups < group_count(kVocab)) {
    if (ragged >= 0) load_ragged<T, kVocab>(row.row, group, ragged, raw);
  }
}

/// Loads the groups `group`, `group` + kLanes, ..., all in whole tiles.
template <typename T, bool kAligned, int kTiles>
LOGPJIT_DEVICE void load_whole(
    const AnyRow<T, kAligned>& row, i32 group,
    Word (&words)[kTiles][AnyRow<T, kAligned>::kWords]) {
  LOGPJIT_UNROLL
  for (int t = 0; t < kTiles; ++t) row.load(group + t * kLanes, words[t]);
}

/// The same near the row's end. Missing groups are masked: their maximum is
/// -inf, and they add zeros. Returns which group holds columns that must be
/// loaded one by one, at most one a lane, or -1.
template <i64 kVocab, typename T, bool kAligned, int kTiles>
LOGPJIT_DEVICE int load_cut(
    const AnyRow<T, kAligned>& row, i32 group,
    Word (&words)[kTiles][AnyRow<T, kAligned>::kWords]) {
  constexpr i32 kVectorGroups = vector_groups<kAligned>(kVocab);
  constexpr u32 kMasked = kMaskedPart<T>;
  int ragged = -1;
  LOGPJIT_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    const i32 at = group + t * kLanes;
    if (at < kVectorGroups) {
      row.load(at, words[t]);
    } else {
      LOGPJIT_UNROLL
      for (Word& word : words[t]) word = {kMasked, kMasked, kMasked, kMasked};
      if (at < group_count(kVocab)) ragged = t;
    }
  }
  return ragged;
}

/// The groups' own words, those of group `ragged` loaded now.
template <i64 kVocab, typename T, bool kAligned, int kTiles>
LOGPJIT_DEVICE void align_span(
    const AnyRow<T, kAligned>& row, i32 group,
    const Word (&words)[kTiles][AnyRow<T, kAligned>::kWords], int ragged,
    Word (&raw)[kTiles][kGroupWords<T>]) {
  LOGPJIT_UNROLL
  for (int t = 0; t < kTiles; ++t) row.align(words[t], raw[t]);
  if constexpr (vector_groups<kAligned>(kVocab) < group_count(kVocab)) {
    if (ragged >= 0) load_ragged<T, kVocab>(row.row, group, ragged, raw);
  }
}

}  // namespace logpjit::device
