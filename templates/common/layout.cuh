// The canonical lanes: which column goes where, as functions of V alone. Plain
// constexpr, shared by device and host code.
#pragma once

namespace logpjit::device {

/// Column j belongs to group j / 8, group g to lane g % 1024. A tile is one
/// group of every lane.
constexpr int kLanes = 1024;
constexpr int kTileColumns = 8 * kLanes;

constexpr int group_count(long long vocab) {
  return static_cast<int>((vocab + 7) / 8);
}
constexpr int tile_count(long long vocab) {
  return (group_count(vocab) + kLanes - 1) / kLanes;
}
/// Rows of more than 5 tiles are cut into 4 segments of whole tiles; a lane
/// starts afresh in each, and segments merge in order.
constexpr int segment_count(long long vocab) {
  return tile_count(vocab) > 5 ? 4 : 1;
}
constexpr int segment_tiles(long long vocab) {
  return (tile_count(vocab) + segment_count(vocab) - 1) / segment_count(vocab);
}

/// The tile after the last of a segment.
constexpr int segment_end(long long vocab, int segment) {
  const int end = (segment + 1) * segment_tiles(vocab);
  return end < tile_count(vocab) ? end : tile_count(vocab);
}

/// A lane takes the tiles of a segment in spans of at most `most`, about as
/// long as each other: one maximum and one rescaling a span.
constexpr int balanced_tiles(int tiles, int most) {
  const int spans = (tiles + most - 1) / most;
  return (tiles + spans - 1) / spans;
}
constexpr int span_tiles(long long vocab) {
  return balanced_tiles(segment_tiles(vocab), 5);
}
/// The same for two rows at once.
constexpr int kl_span_tiles(long long vocab) {
  return balanced_tiles(segment_tiles(vocab), 2);
}

/// Members of a row state that a set of terms needs.
constexpr int state_members(int terms) {
  return 2 + ((terms & 2) != 0) + ((terms & 8) != 0) + ((terms & 16) != 0);
}
/// Warps whose states meet at the end of the lane tree.
constexpr int kTreeWarps = 8;
/// Shared memory of a block that sweeps a row: the tree's warps, then every
/// lane's total.
constexpr int sweep_bytes(int terms) {
  return (kTreeWarps + kLanes) * state_members(terms) * 4;
}

/// Shared memory of a block of the split kernel: the tree's warps, every lane
/// (in block 0), and the block's own lanes of each segment.
constexpr int split_bytes(long long vocab, int split, int terms) {
  const int own = kLanes / split * segment_count(vocab);
  return (kTreeWarps + kLanes + own) * state_members(terms) * 4;
}

/// Chunks of `chunk_words` 16-byte words that cover any row of V elements of
/// `size` bytes, wherever it starts.
constexpr int chunk_count(long long vocab, int size, bool aligned,
                          int chunk_words) {
  const long long elements = 16 / size;
  const long long slack = aligned ? 0 : elements - 1;
  const long long words = (vocab + slack + elements - 1) / elements;
  return static_cast<int>((words + chunk_words - 1) / chunk_words);
}

/// Whether a gradient has columns of several ids to look up.
constexpr bool has_hits(bool many_ids, int terms) {
  return many_ids && (terms & 1) != 0;
}
/// Parts that a chunk of a gradient is written in. With several ids a row the
/// ids are looked at once a chunk, so chunks are larger.
constexpr int gradient_parts(bool hits) { return hits ? 3 : 1; }
/// Chunks of a row's gradient, whose parts are `part_words` words.
constexpr int gradient_chunks(long long vocab, int size, bool aligned,
                              bool hits, int part_words) {
  return chunk_count(vocab, size, aligned, part_words * gradient_parts(hits));
}

/// Chunks of `chunk_groups` groups that cover a row of V columns.
constexpr int group_chunk_count(long long vocab, int chunk_groups) {
  return (group_count(vocab) + chunk_groups - 1) / chunk_groups;
}

/// Members of the KL state; shared memory of a block that sweeps two rows.
constexpr int kKlMembers = 5;
constexpr int kKlSweepBytes = (kTreeWarps + kLanes) * kKlMembers * 4;

/// Shared memory for a row's ids, at most 512: those that fall into one chunk,
/// 16 bytes each, then column and gain of all.
constexpr int kMostIds = 512;
constexpr int kIdTableAt = kMostIds * 16;
constexpr int kHitListBytes = kIdTableAt + kMostIds * 8;

/// The fused kernel's rows in flight between forward and gradient warps.
constexpr int kRowBuffers = 16;
/// Tiles of a long row that go through the fused kernel's ring: all but those
/// of the last segment, which stay in registers.
constexpr int long_ring_tiles(long long vocab) {
  return segment_count(vocab) < 2
             ? 0
             : segment_end(vocab, segment_count(vocab) - 2);
}
/// Words of a block's part of one tile, and up to 7 before it.
constexpr int fused_slot_bytes(int size, int cluster) {
  return (kLanes / cluster * 8 * size / 16 + 8) * 16;
}
/// Lanes that a forward thread hands to another when bits 8 and 7 fold.
constexpr int fold_states(int forward_threads, int cluster) {
  return forward_threads > 128 ? (forward_threads - 128) * (2 / cluster) : 0;
}
constexpr int fused_bytes(int size, int cluster, int slots, int forward_threads,
                          int terms) {
  const int states =
      kRowBuffers * kTreeWarps + 2 * fold_states(forward_threads, cluster);
  return slots * (fused_slot_bytes(size, cluster) + 16) + kRowBuffers * 8 +
         states * state_members(terms) * 4;
}

// One rank's partial results of a block of rows, a multiple of 16 bytes:
//   ShardHeader
//   a record per row: the state's members, then the picked logits
// In segment mode the records hold picked logits only, and after them, from a
// multiple of 16 bytes on, come lane states: [row][slot][member][lane].
constexpr long long kShardHeaderBytes = 32;

/// Picked logits travel in the records up to this many ids a row; beyond, the
/// ranks add up buffers in which every word has one owner.
constexpr int kMostPicked = 16;

/// Floats of a row's record; `slots` 0 = not in segment mode.
constexpr long long shard_record_floats(int members, long long picked,
                                        long long slots) {
  return (slots == 0 ? members : 0) + picked;
}
/// Bytes before the lane states.
constexpr long long shard_head_bytes(long long rows, int members,
                                     long long picked, long long slots) {
  const long long bytes =
      kShardHeaderBytes +
      rows * shard_record_floats(members, picked, slots) * 4;
  return (bytes + 15) / 16 * 16;
}
constexpr long long shard_bytes(long long rows, int members, long long picked,
                                long long slots) {
  return shard_head_bytes(rows, members, picked, slots) +
         rows * slots * members * kLanes * 4;
}

/// Columns of a segment: where shards may be cut in segment mode.
constexpr long long segment_columns(long long vocab) {
  return static_cast<long long>(segment_tiles(vocab)) * kTileColumns;
}

/// Rows that a block of the merging kernels takes, a warp each.
constexpr int kMergeBlock = 256;
constexpr int kMergeRows = kMergeBlock / 32;

}  // namespace logpjit::device
