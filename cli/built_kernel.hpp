// One kernel that was found or compiled, for tables and documents.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/arch_builder.hpp"

namespace logpjit::cli {

struct BuiltKernel {
  std::string arch;
  LaunchConfig config;
  runtime::Built built;
  std::uint32_t dynamic_shared_bytes = 0;
  double ms = 0;  ///< to find or compile it

  bool hit() const { return built.origin != cache::Origin::kCompiled; }
};

/// Throws what ArchBuilder::build does.
BuiltKernel build_kernel(ArchBuilder& builder, const KernelSpec& spec,
                         const LaunchConfig& config);

/// Threads that build kernels side by side: one a core, at most 8.
int build_threads();

/// All of `configs`, side by side; throws what the first failed one in their
/// order threw.
std::vector<BuiltKernel> build_kernels(ArchBuilder& builder,
                                       const KernelSpec& spec,
                                       std::span<const LaunchConfig> configs);

/// A JSON object: arch, config, key, facts of the image (null where a compiler
/// does not say), cache, ms, compile_ms.
std::string to_json(const BuiltKernel& kernel);

}  // namespace logpjit::cli
