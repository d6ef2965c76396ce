// One row per kernel: defaults measured on an H200, shapes from the templates'
// own layout functions.
#include "runtime/launch_table.hpp"

#include <fmt/format.h>

#include <array>

#include "generator/generate.hpp"
#include "logpjit/error.hpp"
#include "templates/common/layout.cuh"

namespace logpjit::runtime {
namespace {

using Choices = std::vector<RowChoice> (*)(const KernelSpec&,
                                           const DeviceInfo&);
using Shape = LaunchShape (*)(const KernelSpec&, const LaunchConfig&);

struct LaunchRow {
  std::string_view kernel;
  Shape shape;
};

std::uint32_t unsigned_at(const LaunchConfig& config, std::string_view name) {
  return static_cast<std::uint32_t>(config.at(name));
}

LaunchShape sweep_shape(const KernelSpec& spec, const LaunchConfig& config) {
  const int block = config.at("block");
  return {.grid = 1,
          .block = unsigned_at(config, "block"),
          .cluster = 1,
          .dynamic_shared_bytes = static_cast<std::uint32_t>(device::sweep_bytes(
              spec.vocab, block, static_cast<int>(spec.terms)))};
}

constexpr std::array kLaunches{
    LaunchRow{"row_statistics", sweep_shape},
};

/// Blocks of 512 threads reach the read bandwidth with 32 registers; more terms
/// or wider logits need more registers, hence fewer blocks a multiprocessor.
LaunchConfig sweep_config(const KernelSpec& spec) {
  if (spec.vocab <= device::kTileColumns / 2) {
    return {{"block", 128}, {"min_blocks", 8}, {"flight", 4}};
  }
  const bool few = spec.terms == Terms::kLogp ||
                   spec.terms == Terms::kEntropy ||
                   spec.terms == (Terms::kLogp | Terms::kEntropy);
  const bool light = few && spec.logits != DType::kFp32 && !spec.softcap;
  return {{"block", 512}, {"min_blocks", light ? 4 : 2}, {"flight", 2}};
}

std::vector<RowChoice> forward_choices(const KernelSpec& spec,
                                       const DeviceInfo&) {
  return {{.config = sweep_config(spec)}};
}

struct ChoiceRow {
  bool kl;
  Pass pass;
  Choices choices;
};

constexpr std::array kChoices{
    ChoiceRow{false, Pass::kForward, forward_choices},
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

LaunchShape shape_per_row(const KernelSpec& spec, const LaunchConfig& config) {
  const std::string kernel = generator::kernel_name(spec, config);
  for (const LaunchRow& row : kLaunches) {
    if (row.kernel == kernel) return row.shape(spec, config);
  }
  throw Error(ErrorCode::kInternal,
              fmt::format("{} has no launch shape", kernel));
}

}  // namespace logpjit::runtime
