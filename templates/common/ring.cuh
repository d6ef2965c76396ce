// A ring of row pieces in shared memory, filled by the copy engine.
#pragma once

#include "common/dtype.cuh"
#include "common/groups.cuh"
#include "common/layout.cuh"

namespace logpjit::device {

/// A slot of the ring and the parity of its current use.
struct RingPlace {
  u32 slot;
  u32 phase;
};

/// One row in shared memory, tile by tile. A cluster of two blocks shares a
/// row: block c takes the lanes whose bit 7 is c, so that the lane tree's last
/// fold is the one between the blocks. A slot holds a block's part of one tile
/// as pieces of consecutive groups; a piece starts up to 7 words early, at a
/// 128-byte line of the gradient, so that lines are written whole wherever the
/// row starts, and ends one word late when the row is unaligned.
template <typename T, i64 kVocab, bool kAligned, int kCluster, int kSlots>
struct Ring {
  static constexpr int kPieces = kCluster == 1 ? 1 : 4;
  static constexpr int kPieceGroups = kLanes / (kPieces * kCluster);
  static constexpr int kPieceWords = kPieceGroups * kGroupWords<T>;
  static constexpr int kPieceStride = kPieceWords + 8;
  static constexpr int kSlotWords = kPieces * kPieceStride;
  static constexpr int kBytes = kSlots * kSlotWords * 16;
  static constexpr i32 kVectorGroups = vector_groups<kAligned>(kVocab);
  static constexpr i32 kSteps = (kVectorGroups + kLanes - 1) / kLanes;
  static constexpr i32 kLastPiece = (kVectorGroups - 1) / kPieceGroups;

  int rank;

  LOGPJIT_DEVICE static Word* slot(RingPlace at) {
    return shared_memory<Word>(0) + at.slot * kSlotWords;
  }
  LOGPJIT_DEVICE static void advance(RingPlace& at) {
    if (++at.slot == kSlots) {
      at.slot = 0;
      at.phase ^= 1u;
    }
  }

  /// Number of the block's piece `q` of tile `step`, over the whole row.
  LOGPJIT_DEVICE i32 piece_number(i32 step, int q) const {
    return (step * kPieces + q) * kCluster + rank;
  }
  LOGPJIT_DEVICE static i32 groups_of(i32 piece) {
    const i32 left = kVectorGroups - piece * kPieceGroups;
    return left < 0 ? 0 : left < kPieceGroups ? left : kPieceGroups;
  }
  /// Word 0 of piece `q`; words -7 to -1 are before it.
  LOGPJIT_DEVICE static const Word* piece_words(const Word* slot, int q) {
    return slot + q * kPieceStride + 7;
  }

  /// The words of one piece that its block writes: [first, last), relative to
  /// word 0. `lead` is the distance from the last line start to the row.
  struct Range {
    i32 first;
    i32 last;
  };
  LOGPJIT_DEVICE static Range written_words(i32 piece, int lead) {
    const i32 words = groups_of(piece) * kGroupWords<T>;
    if (words == 0) return {0, 0};
    return {piece == 0 ? 0 : -lead,
            piece == kLastPiece ? words : kPieceWords - lead};
  }

  /// Starts the copies of one step; the bytes arrive at `full`. One thread.
  LOGPJIT_DEVICE void load(const Word* row, i32 step, RingPlace place, int lead,
                           bool unaligned, Mbarrier* full,
                           CachePolicy policy) const {
    Word* to = slot(place);
    u32 bytes = 0;
    for (int q = 0; q < kPieces; ++q) {
      bytes += piece_bytes(piece_number(step, q), lead, unaligned);
    }
    mbarrier_expect(full, bytes);
    for (int q = 0; q < kPieces; ++q) {
      const i32 piece = piece_number(step, q);
      const u32 size = piece_bytes(piece, lead, unaligned);
      if (size == 0) continue;
      const int early = piece == 0 ? 0 : lead;
      bulk_load(to + q * kPieceStride + 7 - early,
                row + static_cast<i64>(piece) * kPieceWords - early, size, full,
                policy);
    }
  }

  LOGPJIT_DEVICE static u32 piece_bytes(i32 piece, int lead, bool unaligned) {
    const i32 groups = groups_of(piece);
    if (groups == 0) return 0;
    const int early = piece == 0 ? 0 : lead;
    return static_cast<u32>(groups * kGroupWords<T> + early +
                            (unaligned ? 1 : 0)) *
           16u;
  }
};

}  // namespace logpjit::device
