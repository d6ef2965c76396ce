// One rank of a vocab-parallel group at work: blocks of rows, streams, buffers.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "logpjit/vocab_parallel.hpp"
#include "runtime/collective/call_card.hpp"
#include "runtime/engine.hpp"
#include "runtime/operations/shard.hpp"

namespace logpjit::runtime {

/// How a call's rows are cut; the same on all ranks.
struct BlockPlan {
  std::int64_t rows = 0;
  std::int64_t block_rows = 0;
  std::int64_t blocks = 0;
  /// Blocks that have memory of their own; later ones take their turn.
  std::int64_t places = 0;
  std::size_t place_bytes = 0;

  std::size_t bytes() const {
    return static_cast<std::size_t>(places) * place_bytes;
  }
  RowBlock block(std::int64_t number) const;
};
/// `block_rows` 0 = the fixed schedule.
BlockPlan plan_blocks(const ShardForward& shard, std::int64_t block_rows);

class ShardGroup {
 public:
  ShardGroup(Runtime& runtime, Collective& collective, VocabShards shards,
             const VocabParallelOptions& options);
  ~ShardGroup();
  ShardGroup(const ShardGroup&) = delete;
  ShardGroup& operator=(const ShardGroup&) = delete;

  Runtime& runtime() const { return runtime_; }
  const VocabShards& shards() const { return shards_; }
  ShardPlace place() const;

  /// `Shard` is RowShard or KlShard, `Call` what it is made from.
  template <typename Shard, typename Call>
  std::size_t workspace_bytes(const Call& call) const {
    const Shard shard(runtime_, call, place());
    return plan_blocks(shard, options_.block_rows).bytes();
  }
  template <typename Shard, typename Call>
  void forward(const Call& call, const Workspace& workspace,
               CUstream_st* stream);

  void check(CUstream_st* stream);

 private:
  /// The blocks in order; the first one's statistics are under way.
  template <typename Shard>
  void run(const Shard& shard, const BlockPlan& plan,
           const Workspace& workspace, CUstream_st* stream);
  template <typename Shard>
  void gather_and_merge(const Shard& shard, RowBlock block,
                        const ShardBuffers& all, CUstream_st* stream);
  /// The memory of block `number`: partials of all ranks, then words.
  ShardBuffers buffers(const ShardForward& shard, const BlockPlan& plan,
                       const Workspace& workspace, std::int64_t number) const;
  ShardBuffers own(const ShardForward& shard, const ShardBuffers& all,
                   std::int64_t rows) const;

  void send_card(const CallCard& card);
  /// Waits for the ranks' cards and compares them.
  void settle(const std::exception_ptr& own_refusal);
  void await(const Event& event, const std::string& what);

  Runtime& runtime_;
  Device& device_;
  Collective& collective_;
  VocabShards shards_;
  VocabParallelOptions options_;
  std::unique_ptr<Buffer> cards_;       ///< every rank's, then this one's
  std::unique_ptr<Buffer> host_cards_;  ///< the same
  std::unique_ptr<Buffer> disagreement_;
  CUstream_st* side_ = nullptr;
  std::unique_ptr<Event> settled_;
  std::array<std::unique_ptr<Event>, 2> swept_;
  std::array<std::unique_ptr<Event>, 2> merged_;
};

}  // namespace logpjit::runtime
