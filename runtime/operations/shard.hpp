// A checked vocab-parallel forward of one rank: rows and divergences alike.
#pragma once

#include <cstdint>
#include <string_view>

#include "logpjit/shard_operations.hpp"
#include "runtime/engine.hpp"
#include "templates/common/arguments.cuh"

namespace logpjit::runtime {

/// Everything on which ranks must agree. Plain numbers, compared field by
/// field; the digest of its bytes travels with the partial results.
struct ShardSignature {
  std::int64_t rows = 0;
  std::int64_t ids_per_row = 0;
  std::int64_t terms = 0;
  std::int64_t direction = 0;  ///< of a divergence
  std::int64_t dtype = 0;
  std::int64_t other_dtype = 0;
  std::int64_t vocab = 0;
  std::int64_t ranges = 0;  ///< digest of the shards' bounds
  std::int64_t order = 0;
  std::int64_t row_map = 0;
  std::int64_t temperature = 0;  ///< float bits; -1 = one per row
  std::int64_t other_temperature = 0;
  std::int64_t softcap = 0;
  std::int64_t other_softcap = 0;
  std::int64_t block_rows = 0;  ///< rows gathered at once

  std::uint64_t digest() const;
  friend bool operator==(const ShardSignature&,
                         const ShardSignature&) = default;
};

/// The digest of the bounds, as a signature carries it.
std::int64_t digest_of(const VocabShards& shards);

/// Rows [first, first + count) of a call.
struct RowBlock {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// What both kinds of forward have in common.
struct ShardForward {
  std::int64_t rows = 0;
  std::int64_t words_per_row = 0;  ///< picked logits outside the records
  int members = 0;
  KernelSpec statistics{};
  KernelSpec merge{};
  device::ShardArgument shard{};
  ShardSignature signature{};
  int ranks = 1;

  /// From the specification of the unsharded values, when `signature` and
  /// `shard.picked` are set: the rank's columns, the kernels.
  void set_kernels(const KernelSpec& values, VocabRange live,
                   const ShardPlace& place);
  void prepare(Engine& engine) const;
  /// Says how many rows are gathered at once: all ranks must do the same.
  void set_block_rows(std::int64_t block_rows);
  std::size_t partial_bytes(std::int64_t block_rows) const;
  ShardSizes sizes(std::int64_t block_rows) const;
  device::ShardArgument of(RowBlock block) const;
  /// Blocks of the merging kernel.
  std::int64_t merge_blocks(std::int64_t block_rows) const;
};

/// Both: prepared when made, then launched per block of rows. `buffers` are the
/// block's own.
class RowShard : public ShardForward {
 public:
  RowShard(Runtime& runtime, const RowForward& call, const ShardPlace& place);
  void launch_statistics(RowBlock block, const ShardBuffers& buffers,
                         CUstream_st* stream) const;
  void launch_merge(RowBlock block, const ShardBuffers& buffers,
                    CUstream_st* stream) const;

 private:
  Engine& engine_;
  device::RowStatisticsArguments values_{};
};

class KlShard : public ShardForward {
 public:
  KlShard(Runtime& runtime, const KlForward& call, const ShardPlace& place);
  void launch_statistics(RowBlock block, const ShardBuffers& buffers,
                         CUstream_st* stream) const;
  void launch_merge(RowBlock block, const ShardBuffers& buffers,
                    CUstream_st* stream) const;

 private:
  Engine& engine_;
  device::KlStatisticsArguments values_{};
};

/// The buffers that a part needs: given, and at multiples of 16 and 4 bytes.
void check_buffers(std::string_view op, const ShardForward& shard,
                   const ShardBuffers& buffers, bool merge);

/// Refuses options that only unsharded calls have.
void check_options(std::string_view op, const CallOptions& options);

/// Checks rank and vocabulary of a call; returns the rank's live columns.
VocabRange check_place(std::string_view op, const ShardPlace& place,
                       std::int64_t vocab);

/// Segment mode reads an interior shard as a part of the whole row: no 16-byte
/// word may reach beyond its end.
void check_alignment(std::string_view op, const KernelSpec& spec,
                     VocabRange live, const ShardPlace& place);

/// `logits` are the rank's columns. Those of a rank without any are replaced by
/// a view that the checks accept; it is never read.
TensorView check_columns(std::string_view op, std::string_view name,
                         const TensorView& logits, const ShardPlace& place);

}  // namespace logpjit::runtime
