// One row per kernel: launch shapes from the templates' own layout functions.
#include "runtime/launch_table.hpp"

#include <fmt/format.h>

#include <array>

#include "generator/generate.hpp"
#include "logpjit/error.hpp"
#include "templates/common/layout.cuh"

namespace logpjit::runtime {
namespace {

using Shape = RowShape (*)(const KernelSpec&, const LaunchConfig&);

struct LaunchRow {
  std::string_view kernel;
  Shape shape;
};

RowShape plain_shape(int blocks_per_row, int block, int shared_bytes) {
  return {.launch = {.grid = static_cast<std::uint32_t>(blocks_per_row),
                     .block = static_cast<std::uint32_t>(block),
                     .cluster = 1,
                     .dynamic_shared_bytes =
                         static_cast<std::uint32_t>(shared_bytes)}};
}

RowShape statistics_shape(const KernelSpec& spec, const LaunchConfig& config) {
  const int block = config.at("block");
  return plain_shape(1, block,
                     device::sweep_bytes(static_cast<int>(spec.terms)));
}

RowShape split_shape(const KernelSpec& spec, const LaunchConfig& config) {
  const int split = config.at("split");
  RowShape shape = plain_shape(
      split, device::kLanes / split * config.at("parts"),
      device::split_bytes(spec.vocab, split, static_cast<int>(spec.terms)));
  shape.launch.cluster = static_cast<std::uint32_t>(split);
  return shape;
}

RowShape gradient_shape(const KernelSpec& spec, const LaunchConfig& config) {
  const int block = config.at("block");
  const bool hits =
      device::has_hits(spec.many_ids, static_cast<int>(spec.terms));
  const int chunks = device::gradient_chunks(
      spec.vocab, static_cast<int>(size_of(spec.logits)), spec.aligned, hits,
      block * config.at("flight"));
  return plain_shape(chunks, block, hits ? device::kHitListBytes : 0);
}

RowShape fused_shape(const KernelSpec& spec, const LaunchConfig& config) {
  const int cluster = config.at("cluster");
  const int forward = config.at("forward_threads");
  RowShape shape = plain_shape(
      cluster,
      forward + config.at("gradient_threads") * config.at("gradient_groups") +
          32,
      device::fused_bytes(static_cast<int>(size_of(spec.logits)), cluster,
                          config.at("slots"), forward,
                          static_cast<int>(spec.terms)));
  shape.launch.cluster = static_cast<std::uint32_t>(cluster);
  shape.persistent = true;
  return shape;
}

RowShape kl_statistics_shape(const KernelSpec&, const LaunchConfig& config) {
  const int block = config.at("block");
  return plain_shape(1, block, device::kKlSweepBytes);
}

RowShape kl_gradient_shape(const KernelSpec& spec, const LaunchConfig& config) {
  const int block = config.at("block");
  return plain_shape(
      device::group_chunk_count(spec.vocab, block * config.at("flight")), block,
      0);
}

/// Rows are counted in blocks: see shard_forward.
RowShape shard_merge_shape(const KernelSpec& spec, const LaunchConfig&) {
  const int lanes = has(spec.terms, Terms::kKl)
                        ? device::kKlSweepBytes
                        : device::sweep_bytes(static_cast<int>(spec.terms));
  return plain_shape(1, device::kMergeBlock, spec.segments ? lanes : 0);
}

constexpr std::array kLaunches{
    LaunchRow{"row_statistics", statistics_shape},
    LaunchRow{"row_statistics_split", split_shape},
    LaunchRow{"row_gradient", gradient_shape},
    LaunchRow{"row_fused", fused_shape},
    LaunchRow{"kl_statistics", kl_statistics_shape},
    LaunchRow{"kl_gradient", kl_gradient_shape},
    LaunchRow{"shard_statistics", statistics_shape},
    LaunchRow{"shard_kl_statistics", kl_statistics_shape},
    LaunchRow{"shard_merge", shard_merge_shape},
    LaunchRow{"shard_kl_merge", shard_merge_shape},
    LaunchRow{"shard_gradient", gradient_shape},
};

}  // namespace

RowShape shape_per_row(const KernelSpec& spec, const LaunchConfig& config) {
  const std::string kernel = generator::kernel_name(spec, config);
  for (const LaunchRow& row : kLaunches) {
    if (row.kernel == kernel) return row.shape(spec, config);
  }
  throw Error(ErrorCode::kInternal,
              fmt::format("{} has no launch shape", kernel));
}

}  // namespace logpjit::runtime
