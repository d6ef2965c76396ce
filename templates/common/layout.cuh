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

/// Members of a row state that a set of terms needs.
constexpr int state_members(int terms) {
  return 2 + ((terms & 2) != 0) + ((terms & 8) != 0) + ((terms & 16) != 0);
}
/// States that the lane tree keeps in shared memory: those of threads from 256
/// on, then one for each of eight warps.
constexpr int tree_states(int block) {
  return (block > 256 ? block - 256 : 0) + 8;
}
/// Shared memory of a block that sweeps whole rows: the tree's states, then
/// every lane's total when the row has segments.
constexpr int sweep_bytes(long long vocab, int block, int terms) {
  const int totals = segment_count(vocab) > 1 ? kLanes : 0;
  return (tree_states(block) + totals) * state_members(terms) * 4;
}

}  // namespace logpjit::device
