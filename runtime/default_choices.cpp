// Launch configurations without tuning, as measured on an H200: blocks of few
// registers for plain sweeps, more where a kernel needs them; never a spill.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "logpjit/error.hpp"
#include "runtime/launch_table.hpp"
#include "templates/common/layout.cuh"

namespace logpjit::runtime {
namespace {

using Choices = std::vector<RowChoice> (*)(const KernelSpec&,
                                           const DeviceInfo&);

LaunchConfig statistics_config(const KernelSpec& spec) {
  if (spec.vocab <= device::kTileColumns / 2) {
    return {{"block", 128}, {"min_blocks", 6}, {"flight", 4}};
  }
  const bool heavy = has(spec.terms, Terms::kSquares) ||
                     has(spec.terms, Terms::kArgmax) || spec.softcap ||
                     spec.temperature;
  if (heavy) return {{"block", 256}, {"min_blocks", 3}, {"flight", 4}};
  if (!spec.aligned) return {{"block", 256}, {"min_blocks", 6}, {"flight", 4}};
  if (spec.logits == DType::kFp32) {
    return {{"block", 256}, {"min_blocks", 4}, {"flight", 4}};
  }
  if (has(spec.terms, Terms::kEntropy)) {
    return {{"block", 256}, {"min_blocks", 5}, {"flight", 4}};
  }
  const bool deep = device::segment_count(spec.vocab) > 1;
  return {
      {"block", 512}, {"min_blocks", deep ? 3 : 4}, {"flight", deep ? 4 : 2}};
}

/// Rows of several segments are split over clusters when there are too few of
/// them to fill the GPU: 16 blocks a row up to a quarter of a row per
/// multiprocessor, 2 blocks up to half, then one large block up to one.
std::vector<RowChoice> statistics_choices(const KernelSpec& spec,
                                          const DeviceInfo& device) {
  std::vector<RowChoice> choices;
  const bool clusters =
      device.id.kind == DeviceKind::kCuda && device.major >= 9;
  if (clusters && device::segment_count(spec.vocab) > 1) {
    const std::int64_t units = device.multiprocessors;
    choices.push_back(
        {.max_rows = units / 4, .config = {{"split", 16}, {"parts", 4}}});
    choices.push_back(
        {.max_rows = units / 2, .config = {{"split", 2}, {"parts", 2}}});
    choices.push_back(
        {.max_rows = units,
         .config = {{"block", 1024}, {"min_blocks", 1}, {"flight", 4}}});
  }
  choices.push_back({.config = statistics_config(spec)});
  return choices;
}

/// From compute capability 10.0 on the compiler spends more registers.
bool is_newer(const DeviceInfo& device) { return device.major >= 10; }

std::vector<RowChoice> gradient_choices(const KernelSpec& spec,
                                        const DeviceInfo& device) {
  const bool hits = spec.many_ids && has(spec.terms, Terms::kLogp);
  const bool heavy = spec.softcap || has(spec.terms, Terms::kSquares) ||
                     spec.store == GradStore::kAccumulate;
  if (hits) {
    return {{.config = {{"block", 256}, {"min_blocks", 3}, {"flight", 8}}}};
  }
  const bool roomy = is_newer(device) || (spec.logits == DType::kFp32 &&
                                          has(spec.terms, Terms::kEntropy));
  return {{.config = {{"block", 128},
                      {"min_blocks", heavy   ? 6
                                     : roomy ? 9
                                             : 12},
                      {"flight", 4}}}};
}

/// The largest ring that a cluster of `cluster` blocks can have, if it holds a
/// row and the beginning of the next.
std::optional<int> ring_slots(const KernelSpec& spec, const DeviceInfo& device,
                              int cluster, int forward_threads) {
  // The CPU device runs what an H100 could.
  constexpr std::int64_t kHopperBytes = 232448;
  const std::int64_t limit = device.id.kind == DeviceKind::kCpu
                                 ? kHopperBytes
                                 : device.shared_bytes_per_block;
  const int size = static_cast<int>(size_of(spec.logits));
  const int steps = device::tile_count(spec.vocab);
  int slots = std::min(64, 14 * steps);
  while (slots > 1 &&
         device::fused_bytes(size, cluster, slots, forward_threads,
                             static_cast<int>(spec.terms)) > limit) {
    --slots;
  }
  if (slots < steps + 2) return std::nullopt;
  return slots;
}

std::optional<LaunchConfig> fused_config(const KernelSpec& spec,
                                         const DeviceInfo& device) {
  constexpr int kForward = 256;
  for (const int cluster : {1, 2}) {
    if (const auto slots = ring_slots(spec, device, cluster, kForward)) {
      // 800 threads leave 80 registers each: enough for plain terms.
      const bool wide = cluster == 1 && !has(spec.terms, Terms::kEntropy) &&
                        !has(spec.terms, Terms::kSquares) && !spec.softcap &&
                        spec.aligned;
      return LaunchConfig{{"cluster", cluster},
                          {"forward_threads", kForward},
                          {"gradient_threads", wide ? 512 : 256},
                          {"slots", *slots}};
    }
  }
  return std::nullopt;
}

std::vector<RowChoice> fused_choices(const KernelSpec& spec,
                                     const DeviceInfo& device) {
  if (const auto config = fused_config(spec, device)) {
    return {{.config = *config}};
  }
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{}: a row of {} columns does not fit on chip",
                          spec.op(), spec.vocab));
}

std::vector<RowChoice> kl_statistics_choices(const KernelSpec& spec,
                                             const DeviceInfo& device) {
  const bool heavy =
      spec.softcap || spec.temperature || !spec.aligned || is_newer(device);
  return {{.config = {{"block", spec.vocab <= 4096 ? 128 : 256},
                      {"min_blocks", heavy ? 2 : 4}}}};
}

std::vector<RowChoice> kl_gradient_choices(const KernelSpec& spec,
                                           const DeviceInfo&) {
  const bool heavy = spec.softcap || (spec.grad_a && spec.grad_b) ||
                     !spec.aligned || spec.store == GradStore::kAccumulate;
  if (heavy) {
    return {{.config = {{"block", 256}, {"min_blocks", 2}, {"flight", 1}}}};
  }
  return {{.config = {{"block", 128}, {"min_blocks", 8}, {"flight", 2}}}};
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
