// The parts of a vocab-parallel forward, one by one: rows and divergences
// alike.
#include "runtime/operations/shard.hpp"

namespace logpjit {
namespace {

using runtime::KlShard;
using runtime::RowShard;

template <typename Shard, typename Call>
ShardSizes sizes(Runtime& runtime, const Call& call, const ShardPlace& place) {
  const Shard shard(runtime, call, place);
  return shard.sizes(shard.rows);
}

template <typename Shard, typename Call>
void statistics(Runtime& runtime, const Call& call, const ShardPlace& place,
                const ShardBuffers& buffers, CUstream_st* stream) {
  const Shard shard(runtime, call, place);
  runtime::check_buffers("shard_statistics", shard, buffers, false);
  if (shard.rows == 0) return;
  shard.launch_statistics({0, shard.rows}, buffers, stream);
}

template <typename Shard, typename Call>
void merge(Runtime& runtime, const Call& call, const ShardPlace& place,
           const ShardBuffers& buffers, CUstream_st* stream) {
  const Shard shard(runtime, call, place);
  runtime::check_buffers("shard_merge", shard, buffers, true);
  if (shard.rows == 0) return;
  shard.launch_merge({0, shard.rows}, buffers, stream);
}

}  // namespace

ShardSizes shard_sizes(Runtime& runtime, const RowForward& call,
                       const ShardPlace& place) {
  return sizes<RowShard>(runtime, call, place);
}
ShardSizes shard_sizes(Runtime& runtime, const KlForward& call,
                       const ShardPlace& place) {
  return sizes<KlShard>(runtime, call, place);
}

void shard_statistics(Runtime& runtime, const RowForward& call,
                      const ShardPlace& place, const ShardBuffers& buffers,
                      CUstream_st* stream) {
  statistics<RowShard>(runtime, call, place, buffers, stream);
}
void shard_statistics(Runtime& runtime, const KlForward& call,
                      const ShardPlace& place, const ShardBuffers& buffers,
                      CUstream_st* stream) {
  statistics<KlShard>(runtime, call, place, buffers, stream);
}

void shard_merge(Runtime& runtime, const RowForward& call,
                 const ShardPlace& place, const ShardBuffers& buffers,
                 CUstream_st* stream) {
  merge<RowShard>(runtime, call, place, buffers, stream);
}
void shard_merge(Runtime& runtime, const KlForward& call,
                 const ShardPlace& place, const ShardBuffers& buffers,
                 CUstream_st* stream) {
  merge<KlShard>(runtime, call, place, buffers, stream);
}

}  // namespace logpjit
