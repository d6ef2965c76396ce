// Hints that bring the beginning of a row to the L2 cache before it is loaded.
#pragma once

#include "common/layout.cuh"
#include "common/targets.cuh"

namespace logpjit::device {

/// Rows that start together end together, and while all of them fold their
/// lanes nothing is read: 1 to 2 % of the time for 8192 rows of 75968 bf16
/// logits on an H200, 4 % for 1024. So a block that is done with its row asks
/// for the beginning of the row that will take its place.
///
/// That is the row `in_flight` later, since blocks start in order. But rows
/// drift apart, and what is asked for too early is evicted unread: only the
/// first rows do so, and only those of 2-byte logits, since wider rows take
/// longer and have drifted apart by the end of the first.
template <typename Logit, typename Id, i64 kVocab, int kTerms, bool kManyIds,
          int kRows>
struct RowPrefetch {
  static constexpr bool kUseful =
      sizeof(Logit) == 2 && segment_count(kVocab) > 1;
  static constexpr int kBytes = 16384;
  static constexpr int kLine = 128;
  static constexpr int kTurns = 8;  ///< rows that a block's place takes so

  const RowStatisticsArguments& args;
  i64 n;
  i64 in_flight;

  /// One warp's work: the others are not to wait for an id.
  LOGPJIT_DEVICE void next(int thread) const {
    if constexpr (kUseful) {
      const i64 later = n + in_flight;
      if (thread >= 32 || n >= kTurns * in_flight || later >= args.row_count) {
        return;
      }
      const i64 storage = storage_row<kRows>(args.rows, later);
      if (storage < 0 || !may_be_live(later)) return;
      const Logit* row =
          row_begin<Logit>(args.logits, args.rows,
                           row_position<kRows>(storage, args.rows.inner_rows));
      LOGPJIT_UNROLL
      for (int at = 0; at < kBytes; at += 32 * kLine) {
        prefetch(reinterpret_cast<const char*>(row) + at + thread * kLine);
      }
    }
  }

  /// Several ids are not looked at.
  LOGPJIT_DEVICE bool may_be_live(i64 row) const {
    if constexpr (kTerms != kTermLogp || kManyIds) return true;
    return is_live<kVocab>(load_id<Id>(
        args.ids, vector_position<kRows>(row, args.rows.inner_rows), 0));
  }
};

}  // namespace logpjit::device
