// Parameters, rows and barriers that the roles of the fused kernel share.
#pragma once

#include "common/ring.cuh"
#include "common/store.cuh"
#include "common/targets.cuh"
#include "common/tree.cuh"

namespace logpjit::device {

/// Template parameters under one name.
template <typename LogitType, typename IdType, i64 kVocabulary, int kTermSet,
          bool kIsAligned, int kRowMap, bool kHasTemperature, bool kHasSoftcap,
          int kForward, int kGradient, int kGroups, int kBlocks, int kRingSlots>
struct FusedShape {
  using Logit = LogitType;
  using Id = IdType;
  using Fold = RowFold<kTermSet>;
  /// Rows longer than the ring: their last segment is held in registers, and
  /// the same warps do both passes.
  static constexpr bool kLong = kGroups == 0;
  static constexpr i64 kRingColumns =
      kLong ? long_ring_tiles(kVocabulary) * i64{kTileColumns} : kVocabulary;
  using RowRing = Ring<Logit, kRingColumns, kIsAligned, kBlocks, kRingSlots>;
  static constexpr i64 kVocab = kVocabulary;
  static constexpr int kTerms = kTermSet;
  static constexpr bool kAligned = kIsAligned;
  static constexpr int kRows = kRowMap;
  static constexpr bool kTemperature = kHasTemperature;
  static constexpr bool kSoftcap = kHasSoftcap;
  static constexpr int kForwardThreads = kForward;
  /// Threads of one group of gradient warps, and groups.
  static constexpr int kGradientThreads = kGradient;
  static constexpr int kGradientGroups = kGroups;
  static constexpr int kCluster = kBlocks;
  static constexpr int kSlots = kRingSlots;
  /// Lanes that a forward thread carries.
  static constexpr int kHeld = kLanes / (kCluster * kForwardThreads);
};

/// Where one row lies and whether it is read at all.
template <typename Shape>
struct FusedRow {
  using Logit = typename Shape::Logit;

  RowPosition at;
  bool exists;
  bool is_read;
  const Logit* logits;
  Logit* gradient;

  /// `id` is the row's, from `next_id`.
  LOGPJIT_DEVICE FusedRow(const RowFusedArguments& args, i64 n, i64 id) {
    at = vector_position<Shape::kRows>(n, args.values.rows.inner_rows);
    const i64 storage = n < args.values.row_count
                            ? storage_row<Shape::kRows>(args.values.rows, n)
                            : -1;
    exists = storage >= 0;
    is_read = exists;
    if constexpr (Shape::kTerms == kTermLogp) {
      is_read = is_read && is_live<Shape::kVocab>(id);
    }
    const RowPosition row_at = row_position<Shape::kRows>(
        exists ? storage : 0, args.values.rows.inner_rows);
    logits = row_begin<Logit>(args.values.logits, args.values.rows, row_at);
    gradient = row_begin<Logit>(args.gradient, args.gradient_rows, row_at);
  }

  /// The id of row `n`, loaded a row ahead by every role; -1 past the end.
  LOGPJIT_DEVICE static i64 next_id(const RowFusedArguments& args, i64 n) {
    if constexpr ((Shape::kTerms & kTermLogp) != 0) {
      if (n < args.values.row_count) {
        return load_id<typename Shape::Id>(
            args.values.ids,
            vector_position<Shape::kRows>(n, args.values.rows.inner_rows), 0);
      }
    }
    return -1;
  }

  /// Elements between the row's first word and its first element; the same for
  /// logits and gradient.
  LOGPJIT_DEVICE int offset() const {
    if constexpr (Shape::kAligned) {
      return 0;
    } else {
      return static_cast<int>((reinterpret_cast<u64>(logits) & 15) /
                              sizeof(Logit));
    }
  }
  LOGPJIT_DEVICE const Word* words() const {
    return reinterpret_cast<const Word*>(logits - offset());
  }
  LOGPJIT_DEVICE Word* gradient_words() const {
    return reinterpret_cast<Word*>(gradient - offset());
  }
  /// Words between the last 128-byte line of the gradient and its row.
  LOGPJIT_DEVICE int lead() const {
    return static_cast<int>(reinterpret_cast<u64>(gradient) / 16 % 8);
  }
  LOGPJIT_DEVICE RowScale scale(const RowFusedArguments& args) const {
    return row_scale<Shape::kTemperature, Shape::kSoftcap>(
        args.values.transform, at);
  }
};

/// Barriers and row states behind the ring in shared memory.
template <typename Shape>
struct FusedBarriers {
  using Fold = typename Shape::Fold;
  static constexpr int kStateBytes = kTreeWarps * Fold::kMembers * 4;
  static constexpr int kFullAt = Shape::RowRing::kBytes;
  static constexpr int kStatesAt =
      kFullAt + (2 * Shape::kSlots + kRowBuffers) * 8;
  static constexpr int kFoldAt = kStatesAt + kRowBuffers * kStateBytes;
  static constexpr int kFoldStates =
      fold_states(Shape::kForwardThreads, Shape::kCluster);

  Mbarrier* first = settled(shared_memory<Mbarrier>(kFullAt));

  LOGPJIT_DEVICE Mbarrier* full(RingPlace at) const { return first + at.slot; }
  LOGPJIT_DEVICE Mbarrier* empty(RingPlace at) const {
    return first + Shape::kSlots + at.slot;
  }
  LOGPJIT_DEVICE Mbarrier* ready(u32 row) const {
    return first + 2 * Shape::kSlots + row % kRowBuffers;
  }
  /// The row's final state, once all eight warp states are there.
  LOGPJIT_DEVICE RowState wait_for_state(u32 row, int thread,
                                         float to_log2) const {
    mbarrier_wait(ready(row), row / kRowBuffers % 2);
    return Fold{to_log2}.template merge_warp<3>(states(row).get(thread % 8));
  }
  /// In a cluster the states come as counted bytes: one thread arms the barrier
  /// for the next row that uses its buffer.
  LOGPJIT_DEVICE void rearm(u32 row) const {
    if (Shape::kCluster > 1) mbarrier_expect(ready(row), kStateBytes);
  }

  LOGPJIT_DEVICE void prepare(int thread) const {
    if (thread == 0) {
      for (u32 i = 0; i < Shape::kSlots; ++i) {
        mbarrier_init(full({i, 0}), 1);
        mbarrier_init(empty({i, 0}), Shape::kGradientThreads / 32);
      }
      for (u32 i = 0; i < kRowBuffers; ++i) {
        mbarrier_init(ready(i), Shape::kCluster > 1 ? 1 : 8);
        if (Shape::kCluster > 1) mbarrier_expect(ready(i), kStateBytes);
      }
      mbarrier_publish();
    }
    if constexpr (Shape::kCluster > 1) {
      sync_cluster();
    } else {
      sync_threads();
    }
  }

  /// The eight warp states of row number `row`.
  LOGPJIT_DEVICE StateStore<Fold> states(u32 row) const {
    return {shared_memory<float>(
                kStatesAt + static_cast<int>(row % kRowBuffers) * kStateBytes),
            8};
  }
  /// Scratch for folding bits 8 and 7, two rows deep.
  LOGPJIT_DEVICE StateStore<Fold> fold_store(u32 row) const {
    constexpr int kBytes = kFoldStates * Fold::kMembers * 4;
    return {shared_memory<float>(kFoldAt + static_cast<int>(row % 2) * kBytes),
            kFoldStates};
  }

  /// Gives one warp's state of a row to all blocks of the cluster.
  LOGPJIT_DEVICE void publish(u32 row, int slot, const RowState& state) const {
    const StateStore<Fold> store = states(row);
    if constexpr (Shape::kCluster == 1) {
      store.put(slot, state);
      mbarrier_arrive(ready(row));
    } else {
      for (int rank = 0; rank < Shape::kCluster; ++rank) {
        store.send(rank, slot, state, ready(row));
      }
    }
  }
};

}  // namespace logpjit::device
