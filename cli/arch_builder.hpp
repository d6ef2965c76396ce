// Kernels of one architecture, found or compiled without a device behind it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/arch.hpp"
#include "logpjit/kernel_spec.hpp"
#include "logpjit/launch_config.hpp"
#include "logpjit/options.hpp"
#include "runtime/engine.hpp"

namespace logpjit::cli {

class ArchBuilder {
 public:
  /// `options` says which caches and compilers; its device does not matter.
  ArchBuilder(const Arch& arch, Options options);

  const Arch& arch() const { return arch_; }
  cache::Key key(const KernelSpec& spec, const LaunchConfig& config) const;
  /// From the caches or the compiler. An architecture that the compiler does
  /// not know is Error{kInvalidArgument} naming --arch.
  runtime::Built build(const KernelSpec& spec, const LaunchConfig& config);
  /// From the caches alone.
  std::optional<cache::Found> find(const KernelSpec& spec,
                                   const LaunchConfig& config);

 private:
  const Arch arch_;
  std::string target_;
  std::unique_ptr<runtime::Engine> engine_;
};

/// "sm_90a,sm_100a"; Error{kInvalidArgument} for unknown ones and for none.
std::vector<Arch> parse_archs(const std::string& text);

/// The configurations that a run would use, each once: those without tuning,
/// then what of `tuned` was measured on the architecture. With `asked`
/// ("block=512,...") that one alone.
std::vector<LaunchConfig> configs_of(
    const KernelSpec& spec, const Arch& arch, const std::string& asked,
    std::span<const runtime::TunedConfig> tuned);

}  // namespace logpjit::cli
