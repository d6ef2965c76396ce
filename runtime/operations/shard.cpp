// What rows and divergences share: place, sizes, signature.
#include "runtime/operations/shard.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "cache/digest.hpp"
#include "logpjit/error.hpp"
#include "runtime/operations/check.hpp"
#include "templates/common/layout.cuh"

namespace logpjit::runtime {
namespace {

std::uint64_t first_word(const cache::Digest& digest) {
  std::uint64_t word = 0;
  std::memcpy(&word, digest.data(), sizeof word);
  return word;
}

}  // namespace

std::uint64_t ShardSignature::digest() const {
  static_assert(sizeof(ShardSignature) == 15 * sizeof(std::int64_t));
  return first_word(cache::digest(std::as_bytes(std::span(this, 1))));
}

std::int64_t digest_of(const VocabShards& shards) {
  cache::DigestStream stream;
  for (int rank = 0; rank < shards.ranks(); ++rank) {
    const VocabRange range = shards.range(rank);
    stream.add(std::as_bytes(std::span(&range, 1)));
  }
  return static_cast<std::int64_t>(first_word(stream.value()));
}

void ShardForward::set_kernels(const KernelSpec& values, VocabRange live,
                               const ShardPlace& place) {
  const std::int64_t vocab = place.shards->vocab();
  const bool segments = place.order == MergeOrder::kSegments;
  ranks = place.shards->ranks();
  shard.begin = live.begin;
  shard.end = live.end;
  shard.slots = segments ? place.shards->most_segments() : 0;
  shard.digest = signature.digest();
  statistics = values;
  statistics.pass = Pass::kShardStatistics;
  statistics.global_vocab = vocab;
  statistics.segments = segments;
  if (live.width() == 0) statistics.vocab = 1;
  if (segments) statistics.vocab = vocab;
  merge = {.terms = values.terms,
           .pass = Pass::kShardMerge,
           .vocab = vocab,
           .rows = values.rows,
           .temperature = values.temperature,
           .global_vocab = vocab,
           .segments = segments};
}

void ShardForward::prepare(Engine& engine) const {
  if (rows == 0) return;
  engine.program(statistics, nullptr);
  engine.program(merge, nullptr);
}

void ShardForward::set_block_rows(std::int64_t block_rows) {
  signature.block_rows = block_rows;
  shard.digest = signature.digest();
}

std::size_t ShardForward::partial_bytes(std::int64_t block_rows) const {
  return static_cast<std::size_t>(
      device::shard_bytes(block_rows, members, shard.picked, shard.slots));
}

ShardSizes ShardForward::sizes(std::int64_t block_rows) const {
  return {.partials = partial_bytes(block_rows),
          .words = static_cast<std::size_t>(block_rows * words_per_row) * 4};
}

device::ShardArgument ShardForward::of(RowBlock block) const {
  device::ShardArgument argument = shard;
  argument.first_row = block.first;
  argument.rows = block.count;
  return argument;
}

std::int64_t ShardForward::merge_blocks(std::int64_t block_rows) const {
  if (merge.segments) return block_rows;
  return (block_rows + device::kMergeRows - 1) / device::kMergeRows;
}

void check_buffers(std::string_view op, const ShardForward& shard,
                   const ShardBuffers& buffers, bool merge) {
  if (shard.rows == 0) return;
  const auto check = [&](std::string_view name, const void* buffer,
                         std::size_t multiple) {
    if (buffer == nullptr) refuse(op, name, "null pointer");
    if (reinterpret_cast<std::uintptr_t>(buffer) % multiple != 0) {
      refuse(op, name,
             fmt::format("address {} is not a multiple of {} bytes",
                         fmt::ptr(buffer), multiple));
    }
  };
  check("partials", buffers.partials, 16);
  if (shard.words_per_row > 0) check("words", buffers.words, 4);
  if (merge) check("disagreement", buffers.disagreement, 4);
}

void check_options(std::string_view op, const CallOptions& options) {
  if (options.validate || options.copy_strided || options.fallback) {
    refuse(op, "options",
           "validate, copy_strided and fallback are not available over shards");
  }
}

VocabRange check_place(std::string_view op, const ShardPlace& place,
                       std::int64_t vocab) {
  if (place.shards == nullptr) refuse(op, "shards", "are required");
  const VocabShards& shards = *place.shards;
  if (place.rank < 0 || place.rank >= shards.ranks()) {
    refuse(op, "rank",
           fmt::format("{} is not one of the {} ranks", place.rank,
                       shards.ranks()));
  }
  if (vocab != 0 && vocab != shards.vocab()) {
    refuse(op, "vocab",
           fmt::format("{} is not the {} columns of the shards", vocab,
                       shards.vocab()));
  }
  if (place.order == MergeOrder::kSegments && !shards.at_segments()) {
    refuse(op, "shards",
           "are not cut at canonical segments, as MergeOrder::kSegments needs "
           "it: see VocabShards::at_segments");
  }
  return shards.live(place.rank);
}

void check_alignment(std::string_view op, const KernelSpec& spec,
                     VocabRange live, const ShardPlace& place) {
  if (place.order == MergeOrder::kRanks || spec.aligned) return;
  if (live.width() == 0 || live.end == place.shards->vocab()) return;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{}: logits: rows must start at multiples of 16 "
                          "bytes with MergeOrder::kSegments: copy them first",
                          op));
}

TensorView check_columns(std::string_view op, std::string_view name,
                         const TensorView& logits, const ShardPlace& place) {
  if (logits.rank != 2 && logits.rank != 3) {
    refuse(op, name,
           fmt::format("rank {} is neither [N, W] nor [B, S, W]; a rank "
                       "without columns passes W = 0",
                       logits.rank));
  }
  const auto last = static_cast<std::size_t>(logits.rank - 1);
  const std::int64_t width = place.shards->range(place.rank).width();
  if (logits.shape[last] != width) {
    refuse(op, name,
           fmt::format("row length {} is not the {} columns of rank {}",
                       logits.shape[last], width, place.rank));
  }
  if (place.shards->live(place.rank).width() > 0) return logits;
  TensorView stand_in = logits;
  static std::int64_t nothing[2] = {};
  stand_in.data = nothing;
  stand_in.strides = {};
  stand_in.shape[last] = 1;
  stand_in.strides[last] = 1;
  return stand_in;
}

}  // namespace logpjit::runtime
