// Kernels of one architecture, found or compiled without a device behind it.
#include "cli/arch_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/flags.hpp"
#include "logpjit/error.hpp"
#include "runtime/open_device.hpp"

namespace logpjit::cli {

ArchBuilder::ArchBuilder(const Arch& arch, Options options) : arch_(arch) {
  options.device = arch.is_cpu() ? "cpu" : "cuda";
  auto device = arch.is_cpu() ? runtime::open_device(options) : nullptr;
  target_ = device ? device->target() : arch.name;
  engine_ = std::make_unique<runtime::Engine>(options, std::move(device),
                                              runtime::make_compiler(options));
}

cache::Key ArchBuilder::key(const KernelSpec& spec,
                            const LaunchConfig& config) const {
  return engine_->key(spec, config, target_);
}

runtime::Built ArchBuilder::build(const KernelSpec& spec,
                                  const LaunchConfig& config) {
  try {
    return engine_->build(spec, config, target_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--arch: {}", error.message()), error.log());
  }
}

std::optional<cache::Found> ArchBuilder::find(const KernelSpec& spec,
                                              const LaunchConfig& config) {
  return engine_->images().find(key(spec, config));
}

std::vector<Arch> parse_archs(const std::string& text) {
  std::vector<Arch> archs;
  for (const std::string& part : split_list(text)) {
    archs.push_back(parse_arch(part));
  }
  if (archs.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "--arch: names no architecture (such as: sm_90a,sm_100a)");
  }
  return archs;
}

std::vector<LaunchConfig> configs_of(
    const KernelSpec& spec, const Arch& arch, const std::string& asked,
    std::span<const runtime::TunedConfig> tuned) {
  const auto choices = runtime::default_choices(spec, arch.device);
  if (!asked.empty()) {
    return {parse_config_flag(asked, choices.back().config)};
  }
  std::vector<LaunchConfig> configs;
  const auto add = [&](const LaunchConfig& config) {
    if (std::ranges::find(configs, config) == configs.end()) {
      configs.push_back(config);
    }
  };
  for (const runtime::RowChoice& choice : choices) add(choice.config);
  std::ranges::for_each(runtime::measured_configs(spec, arch.device, tuned),
                        add);
  return configs;
}

}  // namespace logpjit::cli
