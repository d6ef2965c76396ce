// What memory allows: kernels that only read, or read and write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "generator/manifest.hpp"
#include "runtime/device.hpp"
#include "runtime/engine.hpp"

namespace logpjit::tuning {

/// One of the kernels of templates/floor.cuh, ready to launch on the engine's
/// device. The engine must outlive it.
class FloorKernel {
 public:
  /// "floor_read" (one input), "floor_copy" (one input, one output) or
  /// "floor_triad" (two inputs, one output). Compiles it, or takes it from the
  /// cache; throws what a compile throws.
  FloorKernel(runtime::Engine& engine, const std::string& kernel);

  /// Reads (and writes) `bytes`, rounded down to whole 16-byte words, of
  /// tensors aligned to 16 bytes. `second` and `output` may be null where the
  /// kernel has none.
  void launch(CUstream_st* stream, const void* first, const void* second,
              void* output, std::int64_t bytes) const;

 private:
  runtime::Device& device_;
  const generator::KernelManifest* manifest_;
  std::unique_ptr<runtime::Function> function_;
};

}  // namespace logpjit::tuning
