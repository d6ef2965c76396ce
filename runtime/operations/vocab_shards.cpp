// Partitions of the vocabulary: made, checked, cut at segments.
#include "logpjit/vocab_shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/operations/check.hpp"
#include "templates/common/layout.cuh"

namespace logpjit {
namespace {

constexpr std::string_view kOp = "vocab shards";

/// The ranks that hold columns, by their first one.
std::vector<std::size_t> by_column(const std::vector<VocabRange>& ranges) {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < ranges.size(); ++rank) {
    if (ranges[rank].width() > 0) ranks.push_back(rank);
  }
  std::ranges::sort(ranks, {},
                    [&](std::size_t rank) { return ranges[rank].begin; });
  return ranks;
}

void check_ranges(const std::vector<VocabRange>& ranges) {
  for (std::size_t rank = 0; rank < ranges.size(); ++rank) {
    const VocabRange& range = ranges[rank];
    if (range.begin < 0 || range.end < range.begin) {
      runtime::refuse(
          kOp, "ranges",
          fmt::format("rank {} has [{}, {})", rank, range.begin, range.end));
    }
  }
}

/// Returns the columns that the ranges cover.
std::int64_t check_partition(const std::vector<VocabRange>& ranges) {
  std::int64_t covered = 0;
  std::size_t before = 0;
  for (const std::size_t rank : by_column(ranges)) {
    const VocabRange& range = ranges[rank];
    if (range.begin < covered) {
      runtime::refuse(
          kOp, "ranges",
          fmt::format("rank {} has [{}, {}), which overlaps rank {}'s [{}, {})",
                      rank, range.begin, range.end, before,
                      ranges[before].begin, ranges[before].end));
    }
    if (range.begin > covered) {
      runtime::refuse(kOp, "ranges",
                      fmt::format("no rank has the columns [{}, {})", covered,
                                  range.begin));
    }
    covered = range.end;
    before = rank;
  }
  return covered;
}

void check_counts(std::int64_t vocab, int ranks) {
  if (vocab < 1) {
    runtime::refuse(kOp, "vocab", fmt::format("{} is below 1", vocab));
  }
  if (ranks < 1) {
    runtime::refuse(kOp, "ranks", fmt::format("{} is below 1", ranks));
  }
}

}  // namespace

VocabShards::VocabShards(std::vector<VocabRange> ranges, std::int64_t vocab)
    : ranges_(std::move(ranges)), vocab_(vocab) {
  if (ranges_.empty()) runtime::refuse(kOp, "ranges", "there is no rank");
  check_ranges(ranges_);
  const std::int64_t covered = check_partition(ranges_);
  if (covered == 0) runtime::refuse(kOp, "ranges", "no rank has a column");
  if (vocab_ == 0) vocab_ = covered;
  if (vocab_ < 0 || vocab_ > covered) {
    runtime::refuse(kOp, "vocab",
                    fmt::format("{} is not between 1 and the {} columns that "
                                "the ranks hold",
                                vocab_, covered));
  }
}

VocabShards VocabShards::even(std::int64_t vocab, int ranks) {
  check_counts(vocab, ranks);
  std::vector<VocabRange> ranges;
  std::int64_t begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t width = vocab / ranks + (rank < vocab % ranks ? 1 : 0);
    ranges.push_back({begin, begin + width});
    begin += width;
  }
  return VocabShards(std::move(ranges));
}

VocabShards VocabShards::at_segments(std::int64_t vocab, int ranks) {
  check_counts(vocab, ranks);
  const std::int64_t columns = device::segment_columns(vocab);
  const std::int64_t segments = (vocab + columns - 1) / columns;
  std::vector<VocabRange> ranges;
  std::int64_t segment = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t count =
        segments / ranks + (rank < segments % ranks ? 1 : 0);
    const auto column = [&](std::int64_t cut) {
      return std::min(cut * columns, vocab);
    };
    ranges.push_back({column(segment), column(segment + count)});
    segment += count;
  }
  return VocabShards(std::move(ranges));
}

int VocabShards::segment_count(std::int64_t vocab) {
  return device::segment_count(vocab);
}

VocabRange VocabShards::range(int rank) const {
  return ranges_.at(static_cast<std::size_t>(rank));
}

VocabRange VocabShards::live(int rank) const {
  const VocabRange held = range(rank);
  const VocabRange live{held.begin, std::min(held.end, vocab_)};
  return live.width() > 0 ? live : VocabRange{};
}

bool VocabShards::at_segments() const {
  const std::int64_t columns = device::segment_columns(vocab_);
  for (int rank = 0; rank < ranks(); ++rank) {
    const VocabRange cut = live(rank);
    if (cut.begin % columns != 0) return false;
    if (cut.end % columns != 0 && cut.end != vocab_) return false;
  }
  return true;
}

int VocabShards::most_segments() const {
  const std::int64_t columns = device::segment_columns(vocab_);
  std::int64_t most = 1;
  for (int rank = 0; rank < ranks(); ++rank) {
    most = std::max(most, (live(rank).width() + columns - 1) / columns);
  }
  return static_cast<int>(most);
}

}  // namespace logpjit
