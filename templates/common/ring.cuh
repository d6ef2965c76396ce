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

/// A group's own words from shared memory, its first column `offset` elements
/// into the word `from`.
template <typename T, bool kAligned>
LOGPJIT_DEVICE void ring_words(const Word* from, int offset,
                               Word (&words)[kGroupWords<T>]) {
  if constexpr (kAligned) {
    LOGPJIT_UNROLL
    for (int w = 0; w < kGroupWords<T>; ++w) words[w] = from[w];
  } else {
    constexpr int kParts = kGroup / kPartElements<T>;
    constexpr bool kPairs = kPartElements<T> == 2;
    const u32* first =
        reinterpret_cast<const u32*>(from) + offset / kPartElements<T>;
    u32 parts[kParts];
    LOGPJIT_UNROLL
    for (int i = 0; i < kParts; ++i) parts[i] = first[i];
    if constexpr (kPairs) {
      const int bits = offset % 2 * 16;
      const u32 last = first[kParts];
      LOGPJIT_UNROLL
      for (int i = 0; i < kParts; ++i) {
        parts[i] =
            shift_pair(parts[i], i + 1 < kParts ? parts[i + 1] : last, bits);
      }
    }
    LOGPJIT_UNROLL
    for (int w = 0; w < kGroupWords<T>; ++w) {
      words[w] = Word{parts[4 * w], parts[4 * w + 1], parts[4 * w + 2],
                      parts[4 * w + 3]};
    }
  }
}

/// One row in shared memory, tile by tile. A cluster of two blocks shares a
/// row: block c takes the lanes whose bit 9 is c, so that the lane tree's last
/// fold is the one between the blocks. A slot holds a piece, the block's part
/// of one tile. It starts up to 7 words early, at a 128-byte line of the
/// gradient, so that lines are written whole wherever the row starts, and ends
/// one word late when the row is unaligned. (Pieces of 2 KB instead of 8 or 16
/// cost 7 % of the bandwidth on an H200.)
template <typename T, i64 kVocab, bool kAligned, int kCluster, int kSlots>
struct Ring {
  static constexpr int kPieceGroups = kLanes / kCluster;
  static constexpr int kPieceWords = kPieceGroups * kGroupWords<T>;
  static constexpr int kSlotWords = kPieceWords + 8;
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

  LOGPJIT_DEVICE static void skip_row(RingPlace& at) {
    at.slot += kSteps;
    if (at.slot >= kSlots) {
      at.slot -= kSlots;
      at.phase ^= 1u;
    }
  }

  /// Number of the block's piece of tile `step`, over the whole row.
  LOGPJIT_DEVICE i32 piece_number(i32 step) const {
    return step * kCluster + rank;
  }
  LOGPJIT_DEVICE static i32 groups_of(i32 piece) {
    const i32 left = kVectorGroups - piece * kPieceGroups;
    return left < 0 ? 0 : left < kPieceGroups ? left : kPieceGroups;
  }
  /// Word 0 of the piece in a slot; words -7 to -1 are before it.
  LOGPJIT_DEVICE static const Word* piece_words(const Word* slot) {
    return slot + 7;
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
    const i32 piece = piece_number(step);
    const u32 bytes = piece_bytes(piece, lead, unaligned);
    mbarrier_expect(full, bytes);
    if (bytes == 0) return;
    const int early = piece == 0 ? 0 : lead;
    bulk_load(slot(place) + 7 - early,
              row + static_cast<i64>(piece) * kPieceWords - early, bytes, full,
              policy);
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
