// Which columns of the vocabulary each rank owns.
#pragma once

#include <cstdint>
#include <vector>

#include "logpjit/api.hpp"

namespace logpjit {

/// Columns [begin, end).
struct VocabRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t width() const { return end - begin; }
  friend bool operator==(const VocabRange&, const VocabRange&) = default;
};

/// A partition of the vocabulary among ranks; every rank makes the same one.
/// Immutable.
class LOGPJIT_API VocabShards {
 public:
  /// `ranges[r]` is what rank r holds, empty or not, in any order of columns;
  /// together they are a partition of [0, end). The first `vocab` columns
  /// count, the rest is padding; 0 = all count. Error{kInvalidArgument} naming
  /// the ranks where they overlap or leave a gap.
  explicit VocabShards(std::vector<VocabRange> ranges, std::int64_t vocab = 0);
  /// Widths that differ by one column at most, the wider ones first.
  static VocabShards even(std::int64_t vocab, int ranks);
  /// Cut at canonical segments, as MergeOrder::kSegments needs it: at most
  /// segment_count() ranks own columns.
  static VocabShards at_segments(std::int64_t vocab, int ranks);
  /// Canonical segments of a vocabulary: 4, or 1 up to 40960 columns.
  static int segment_count(std::int64_t vocab);

  int ranks() const { return static_cast<int>(ranges_.size()); }
  /// Columns that count.
  std::int64_t vocab() const { return vocab_; }
  /// What the rank holds, padding included.
  VocabRange range(int rank) const;
  /// What of it counts; {0, 0} when nothing does.
  VocabRange live(int rank) const;
  /// Whether every cut lies at a canonical segment.
  bool at_segments() const;
  /// Segments of the rank that has most of them.
  int most_segments() const;

 private:
  std::vector<VocabRange> ranges_;
  std::int64_t vocab_ = 0;
};

/// In which order partial results become values; a rank's order is its number.
enum class MergeOrder {
  /// One record a rank and row. The same bits on every rank, in every run; they
  /// depend on how the vocabulary is cut.
  kRanks,
  /// The lanes of canonical segments: the bits of the unsharded operation, for
  /// any number of ranks, from shards cut at segments. 8 to 20 KiB a row and
  /// segment have to be gathered.
  kSegments,
};

}  // namespace logpjit
