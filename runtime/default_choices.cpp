// Launch configurations without tuning, as measured on an H200: blocks of few
// registers for plain sweeps, more where a kernel needs them; never a spill.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "logpjit/error.hpp"
#include "runtime/launch_table.hpp"
#include "templates/common/layout.cuh"

namespace logpjit::runtime {
namespace {

using Choices = std::vector<RowChoice> (*)(const KernelSpec&,
                                           const DeviceInfo&);

LaunchConfig block_config(int block, int min_blocks, int flight) {
  return {{"block", block}, {"min_blocks", min_blocks}, {"flight", flight}};
}

/// Few rows are at most one per multiprocessor. A CPU has too few of these for
/// a second kernel to be worth its compilation.
std::vector<RowChoice> by_rows(const DeviceInfo& device, LaunchConfig few,
                               LaunchConfig many) {
  if (device.id.kind == DeviceKind::kCpu) return {{.config = std::move(many)}};
  return {{.max_rows = device.multiprocessors, .config = std::move(few)},
          {.config = std::move(many)}};
}

/// What an entropy needs beyond the estimate at some sizes, so that it does not
/// spill a few bytes.
int entropy_margin(const KernelSpec& spec) {
  const int tiles = device::tile_count(spec.vocab);
  const bool wide = spec.logits == DType::kFp32;
  const bool tight = wide ? tiles > 26 && tiles < 32 : tiles == 5;
  return tight && spec.aligned ? 2 : 0;
}

/// From compute capability 10.0 on the compiler spends more registers.
bool is_newer(const DeviceInfo& device) { return device.major >= 10; }

/// Registers that a thread of row_statistics needs, by what nvcc 13.0 reports
/// for sm_90a: those of a span of whole tiles, and those of the row's last
/// tiles, which are read group by group.
int statistics_registers(const KernelSpec& spec) {
  const bool wide = spec.logits == DType::kFp32;
  const bool entropy = has(spec.terms, Terms::kEntropy);
  const int group_words = (wide ? 2 : 1) + (spec.aligned ? 0 : 1);
  const int span = device::span_tiles(spec.vocab);
  const int tiles = device::segment_tiles(spec.vocab);
  const std::int64_t groups = spec.vocab / 8 - (spec.aligned ? 0 : 1);
  const int whole_segments = static_cast<int>(groups / device::kLanes / tiles);
  const int cut =
      std::min(span, device::tile_count(spec.vocab) - whole_segments * tiles);
  const int whole = 16 + 4 * span * group_words + (entropy ? 12 : 0);
  const int last = spec.aligned
                       ? (wide ? 20 : 16) + 4 * cut * group_words +
                             (entropy ? (wide ? 20 : 16) : 0)
                       : 22 + (wide ? 20 : 8) * cut + (entropy ? 16 : 0);
  int registers = std::max(whole, last) + (spec.temperature ? 2 : 0);
  if (entropy) registers += entropy_margin(spec);
  if (span < tiles) registers += spec.aligned ? 8 : 24;
  if (spec.aligned && spec.vocab % 8 != 0) registers += 8;
  return wide ? std::max(registers, 40) : registers;
}

/// Blocks of `block` threads that can have so many registers each.
int blocks_with(int registers, int block) {
  const int allocated = (registers + 7) / 8 * 8;
  return std::clamp(65536 / block / allocated, 1, 2048 / block);
}

/// Terms that need more registers than the estimate says.
bool is_heavy(const KernelSpec& spec) {
  return has(spec.terms, Terms::kSquares) || has(spec.terms, Terms::kArgmax) ||
         spec.softcap;
}

/// Wide rows off their lines that need more than 128 registers.
bool is_full(const KernelSpec& spec) {
  return !spec.aligned && spec.logits == DType::kFp32 &&
         device::tile_count(spec.vocab) > 32;
}

/// Sizes at which 32 registers do not suffice in blocks of 512.
bool spills_in_512(std::int64_t vocab) {
  const int tiles = device::tile_count(vocab);
  return tiles == 23 || tiles > 32 ||
         (tiles == 20 && vocab % device::kTileColumns == 0);
}

/// The most blocks of 256 threads with an entropy of 2-byte rows. Beside a
/// logit the compiler spills a few bytes at some lengths and not at others, in
/// no order: by tiles, of rows that end within one and of whole ones.
int most_for_entropy(const KernelSpec& spec) {
  constexpr std::string_view kCut = "654445654654554444545545";
  constexpr std::string_view kWhole = "666546666656554544555545";
  constexpr int kLonger = 4;
  if (!has(spec.terms, Terms::kLogp)) return 6;
  const auto tiles = static_cast<std::size_t>(device::tile_count(spec.vocab));
  const bool is_cut = spec.vocab % device::kTileColumns != 0;
  const std::string_view most = is_cut ? kCut : kWhole;
  return tiles > most.size() ? kLonger : most[tiles - 1] - '0';
}

int blocks_of_256(const KernelSpec& spec) {
  const int blocks = blocks_with(statistics_registers(spec), 256);
  if (!has(spec.terms, Terms::kEntropy) || !spec.aligned ||
      spec.logits == DType::kFp32) {
    return blocks;
  }
  // A position in two dimensions is kept, too.
  const int kept = spec.rows == RowMap::kStrided ? 0 : 1;
  return std::min(blocks, most_for_entropy(spec)) - kept;
}

LaunchConfig statistics_config(const KernelSpec& spec) {
  if (spec.vocab <= device::kTileColumns / 2) return block_config(128, 6, 1);
  if (spec.softcap && !spec.aligned) {
    return block_config(256, is_full(spec) ? 1 : 2, 1);
  }
  if (is_heavy(spec)) return block_config(256, 3, 1);
  int registers = statistics_registers(spec);
  // Two blocks of 512 at least.
  const bool large = spec.aligned && !has(spec.terms, Terms::kEntropy) &&
                     device::tile_count(spec.vocab) > 3 && registers <= 64;
  if (!large) return block_config(256, blocks_of_256(spec), 1);
  // Rows that end within a tile: the compiler makes do with 32, and full
  // multiprocessors gain 1 %.
  const bool ends_early = spec.vocab % device::kTileColumns != 0;
  if (spec.rows != RowMap::kStrided) {
    registers = std::max(registers, 40);
  } else if (ends_early && registers <= 36 && !spills_in_512(spec.vocab)) {
    registers = 32;
  }
  return block_config(512, blocks_with(registers, 512), 1);
}

/// Rows of 2-byte values whose maximum and sum do with 32 registers in blocks
/// of 1024, whatever the estimate.
bool is_slim(const KernelSpec& spec) {
  return spec.aligned && spec.logits != DType::kFp32 && !is_heavy(spec) &&
         !has(spec.terms, Terms::kEntropy) && !spec.temperature &&
         spec.rows == RowMap::kStrided && spec.vocab % 8 == 0 &&
         device::tile_count(spec.vocab) <= 32;
}

/// From one row per multiprocessor to eight, where a last wave of blocks that
/// is nearly empty costs up to half of the bandwidth: blocks that make one wave
/// as long as the rows fit in one, then blocks whose last wave is at least half
/// full at eight rows.
void add_waves(const KernelSpec& spec, const DeviceInfo& device,
               std::vector<RowChoice>& choices) {
  constexpr int kRows = 8;
  const std::int64_t units = device.multiprocessors;
  if (is_heavy(spec) || is_newer(device)) return;
  if (is_slim(spec)) {
    if (!spills_in_512(spec.vocab)) {
      choices.push_back(
          {.max_rows = units * kRows / 2, .config = block_config(512, 4, 1)});
    }
    choices.push_back(
        {.max_rows = units * kRows, .config = block_config(1024, 2, 1)});
    return;
  }
  const int blocks = blocks_of_256(spec);
  const bool is_wide = spec.logits == DType::kFp32;
  const LaunchConfig few =
      blocks == 6 && !is_wide
          ? block_config(512, 3, 1)
          : block_config(256, std::min(blocks, kRows / 2), 1);
  const LaunchConfig many = statistics_config(spec);
  if (few == many) return;
  if (many == block_config(256, blocks, 1)) {
    choices.push_back({.max_rows = units * blocks, .config = many});
  }
  choices.push_back({.max_rows = units * kRows, .config = few});
}

/// Rows of several segments are split over clusters when there are too few of
/// them to fill the GPU: 16 blocks a row up to a quarter of a row per
/// multiprocessor, a few blocks up to half, then one large block up to one.
std::vector<RowChoice> statistics_choices(const KernelSpec& spec,
                                          const DeviceInfo& device) {
  std::vector<RowChoice> choices;
  const bool clusters =
      device.id.kind == DeviceKind::kCuda && device.major >= 9;
  if (clusters && device::segment_count(spec.vocab) > 1) {
    const std::int64_t units = device.multiprocessors;
    const int registers = statistics_registers(spec) + (spec.aligned ? 4 : 24);
    const bool crowded = registers > 64 || spec.softcap;
    const int block = is_full(spec) ? 256 : crowded ? 512 : 1024;
    choices.push_back(
        {.max_rows = units / 4, .config = {{"split", 16}, {"parts", 4}}});
    choices.push_back({.max_rows = units / 2,
                       .config = {{"split", crowded ? 4 : 2}, {"parts", 2}}});
    choices.push_back({.max_rows = units, .config = block_config(block, 1, 1)});
    add_waves(spec, device, choices);
  }
  choices.push_back({.config = statistics_config(spec)});
  return choices;
}

/// Shards are never split over clusters.
std::vector<RowChoice> shard_choices(const KernelSpec& spec,
                                     const DeviceInfo&) {
  constexpr int kBlock = 256;
  constexpr int kMore = 20;  // registers for the record and the ids it owns
  const int blocks = blocks_with(statistics_registers(spec) + kMore, kBlock);
  return {{.config = block_config(kBlock, std::min(blocks, 4), 1)}};
}
std::vector<RowChoice> merge_choices(const KernelSpec&, const DeviceInfo&) {
  return {{.config = {}}};
}

std::vector<RowChoice> gradient_choices(const KernelSpec& spec,
                                        const DeviceInfo& device) {
  const bool hits =
      device::has_hits(spec.many_ids, static_cast<int>(spec.terms));
  const bool heavy = spec.softcap || has(spec.terms, Terms::kSquares) ||
                     spec.store == GradStore::kAccumulate;
  if (hits) {
    const int blocks = spec.logits == DType::kFp32 ? 9 : 10;
    return {{.config = block_config(128, heavy ? 6 : blocks, 4)}};
  }
  const bool roomy = is_newer(device) || (spec.logits == DType::kFp32 &&
                                          has(spec.terms, Terms::kEntropy));
  const LaunchConfig many = block_config(128, heavy ? 6 : roomy ? 9 : 12, 4);
  // Few rows: more, smaller chunks.
  if (heavy || roomy) return {{.config = many}};
  return by_rows(device, block_config(128, 16, 1), many);
}

/// The largest ring that a cluster of `cluster` blocks can have.
int ring_slots(const KernelSpec& spec, const DeviceInfo& device, int cluster,
               int forward_threads) {
  const int size = static_cast<int>(size_of(spec.logits));
  int slots = std::min(64, 14 * device::tile_count(spec.vocab));
  while (slots > 1 && device::fused_bytes(size, cluster, slots, forward_threads,
                                          static_cast<int>(spec.terms)) >
                          device.shared_bytes_per_block) {
    --slots;
  }
  return slots;
}

/// The warps that write a gradient.
struct GradientWarps {
  int threads;  ///< of a group
  int groups;
};

/// Two groups take turns, so that none waits for a row's end. 800 threads leave
/// 72 registers each: enough for plain terms.
GradientWarps gradient_warps(const KernelSpec& spec, bool plain) {
  if (!plain) return {256, 1};
  return {device::segment_count(spec.vocab) == 1 ? 128 : 256, 2};
}

/// Rows that a ring holds, with the beginning of the next.
LaunchConfig ring_config(GradientWarps warps, int cluster, int slots) {
  return {{"cluster", cluster},
          {"forward_threads", 256},
          {"gradient_threads", warps.threads},
          {"gradient_groups", warps.groups},
          {"slots", slots}};
}

std::optional<LaunchConfig> fused_config(const KernelSpec& spec,
                                         const DeviceInfo& device) {
  const bool plain = !has(spec.terms, Terms::kEntropy) &&
                     !has(spec.terms, Terms::kSquares) && !spec.softcap &&
                     !spec.temperature && spec.logits != DType::kFp32;
  for (const int cluster : {1, 2}) {
    const int slots = ring_slots(spec, device, cluster, 256);
    if (slots >= device::tile_count(spec.vocab) + 2) {
      return ring_config(gradient_warps(spec, plain), cluster, slots);
    }
  }
  // Other terms would need more registers than there are. Asked at every call:
  // no more is looked at than that.
  if (!plain || spec.terms != Terms::kLogp || !spec.aligned) {
    return std::nullopt;
  }
  const int most = device::long_ring_tiles(spec.vocab);
  const int slots = ring_slots(spec, device, 2, 512);
  if (most == 0 || slots < most) return std::nullopt;
  return LaunchConfig{{"cluster", 2},
                      {"forward_threads", 512},
                      {"gradient_threads", 512},
                      {"gradient_groups", 0},
                      {"slots", slots}};
}

/// A cluster with one row only has no next one to take turns for: all gradient
/// warps are one group.
std::vector<RowChoice> fused_choices(const KernelSpec& spec,
                                     const DeviceInfo& device) {
  if (const auto config = fused_config(spec, device)) {
    if (config->at("gradient_groups") != 2 ||
        device.id.kind == DeviceKind::kCpu) {
      return {{.config = *config}};
    }
    const int cluster = config->at("cluster");
    return {{.max_rows = device.multiprocessors / cluster,
             .config = ring_config({512, 1}, cluster, config->at("slots"))},
            {.config = *config}};
  }
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{}: a row of {} columns does not fit on chip",
                          spec.op(), spec.vocab));
}

std::vector<RowChoice> kl_statistics_choices(const KernelSpec& spec,
                                             const DeviceInfo& device) {
  const bool heavy =
      spec.softcap || spec.temperature || !spec.aligned || is_newer(device);
  const int block = spec.vocab <= device::kTileColumns / 2 ? 128 : 256;
  // Two lanes at a time where their words and a second span leave room.
  const int span = device::kl_span_tiles(spec.vocab);
  const int tiles = device::segment_tiles(spec.vocab);
  const bool roomy = !heavy && spec.logits != DType::kFp32 &&
                     spec.other != DType::kFp32 &&
                     (tiles == span || tiles % span != 0);
  const LaunchConfig many = block_config(block, heavy ? 2 : 4, roomy ? 2 : 1);
  if (heavy || block == 128 || spec.pass != Pass::kForward) {
    return {{.config = many}};
  }
  return by_rows(device, block_config(1024, 1, 2), many);
}

std::vector<RowChoice> kl_gradient_choices(const KernelSpec& spec,
                                           const DeviceInfo& device) {
  const bool heavy = spec.softcap || (spec.grad_a && spec.grad_b) ||
                     !spec.aligned || spec.store == GradStore::kAccumulate;
  if (heavy) return {{.config = block_config(256, 2, 1)}};
  const bool wide = spec.logits == DType::kFp32 || spec.other == DType::kFp32;
  if (wide) return {{.config = block_config(128, 5, 4)}};
  return by_rows(device, block_config(128, 10, 2), block_config(64, 16, 6));
}

struct ChoiceRow {
  bool kl;
  Pass pass;
  Choices choices;
};

constexpr std::array kChoices{
    ChoiceRow{false, Pass::kForward, statistics_choices},
    ChoiceRow{false, Pass::kBackward, gradient_choices},
    ChoiceRow{false, Pass::kWithGrad, fused_choices},
    ChoiceRow{true, Pass::kForward, kl_statistics_choices},
    ChoiceRow{true, Pass::kBackward, kl_gradient_choices},
    ChoiceRow{false, Pass::kShardStatistics, shard_choices},
    ChoiceRow{true, Pass::kShardStatistics, kl_statistics_choices},
    ChoiceRow{false, Pass::kShardMerge, merge_choices},
    ChoiceRow{true, Pass::kShardMerge, merge_choices},
    ChoiceRow{false, Pass::kShardGradient, gradient_choices},
};

}  // namespace

std::vector<RowChoice> default_choices(const KernelSpec& spec,
                                       const DeviceInfo& device) {
  for (const ChoiceRow& row : kChoices) {
    if (row.kl == has(spec.terms, Terms::kKl) && row.pass == spec.pass) {
      return row.choices(spec, device);
    }
  }
  throw Error(ErrorCode::kUnsupported,
              fmt::format("no kernel serves {}", spec.op()));
}

bool fits_on_chip(const KernelSpec& spec, const DeviceInfo& device) {
  const bool able = device.id.kind == DeviceKind::kCpu || device.major >= 9;
  return able && !spec.many_ids && !has(spec.terms, Terms::kArgmax) &&
         spec.store == GradStore::kWrite &&
         spec.vocab >= device::kTileColumns && fused_config(spec, device);
}

}  // namespace logpjit::runtime
