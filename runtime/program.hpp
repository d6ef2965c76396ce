// A prepared specification: loaded kernels by row count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/image_cache.hpp"
#include "logpjit/kernel_spec.hpp"
#include "logpjit/launch_config.hpp"
#include "runtime/config_use.hpp"
#include "runtime/device.hpp"

namespace logpjit::runtime {

/// One loaded kernel and what is known of it.
struct Variant {
  std::int64_t max_rows = INT64_MAX;
  LaunchConfig config;
  ConfigSource source = ConfigSource::kDefault;
  LaunchShape shape;  ///< grid = blocks per row
  /// Most rows that a launch has blocks for.
  std::int64_t most_rows = INT32_MAX;
  bool persistent = false;  ///< blocks take rows in turn when there are more
  std::shared_ptr<const Function> function{};
  std::shared_ptr<const cache::Image> image{};
  cache::Origin origin = cache::Origin::kCompiled;
};

/// Immutable once made; lives as long as its Engine.
class Program {
 public:
  /// `use` counts the launches; null = nobody does.
  Program(Device& device, const KernelSpec& spec, std::vector<Variant> variants,
          ConfigUse* use = nullptr)
      : device_(device),
        spec_(spec),
        variants_(std::move(variants)),
        use_(use) {}

  const KernelSpec& spec() const { return spec_; }
  Device& device() const { return device_; }
  const std::vector<Variant>& variants() const { return variants_; }
  const Variant& variant(std::int64_t rows) const;

  /// Launches for `rows` > 0 rows. Error{kUnsupported} when the grid would
  /// exceed 2^31 - 1 blocks.
  template <typename Arguments>
  void launch(std::int64_t rows, CUstream_st* stream,
              const Arguments& arguments) const {
    launch_bytes(rows, stream, &arguments, sizeof arguments);
  }

 private:
  void launch_bytes(std::int64_t rows, CUstream_st* stream,
                    const void* arguments, std::size_t bytes) const;

  Device& device_;
  KernelSpec spec_;
  std::vector<Variant> variants_;
  ConfigUse* use_;
};

}  // namespace logpjit::runtime
