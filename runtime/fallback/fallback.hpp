// Calls without a kernel of their own: kernels that the library carries.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/fork_safe_mutex.hpp"
#include "logpjit/kernel_spec.hpp"
#include "runtime/device.hpp"
#include "runtime/fallback/images.hpp"
#include "templates/common/arguments.cuh"

namespace logpjit::runtime {

/// The embedded kernels on one device, each loaded at its first use. Needs no
/// compiler and no memory beyond a call's own tensors. A row's results depend
/// on that row alone, as those of specialised kernels do. Safe to share between
/// threads; a launch of what is loaded takes no lock.
class Fallback {
 public:
  explicit Fallback(Device& device) : device_(device) {}

  /// Loads the kernel, if it is not. Error{kUnavailable} when the library
  /// carries none for this device, Error{kDriver} when the device refuses it.
  void prepare(FallbackKernel kernel);

  /// Takes `rows` rows, `chunk` of them a launch.
  void launch(const KernelSpec& spec,
              const device::RowStatisticsArguments& arguments,
              std::int64_t rows, std::int64_t chunk, CUstream_st* stream);
  void launch(const KernelSpec& spec,
              const device::RowGradientArguments& arguments, std::int64_t rows,
              std::int64_t chunk, CUstream_st* stream);
  void launch(const KernelSpec& spec,
              const device::KlStatisticsArguments& arguments, std::int64_t rows,
              std::int64_t chunk, CUstream_st* stream);
  void launch(const KernelSpec& spec,
              const device::KlGradientArguments& arguments, std::int64_t rows,
              std::int64_t chunk, CUstream_st* stream);

  /// Copies rows with any strides, one block a row.
  void gather(const device::GatherArguments& arguments, std::int64_t rows,
              CUstream_st* stream);

 private:
  template <typename Arguments, typename Rows>
  void launch_chunks(FallbackKernel kernel, const KernelSpec& spec,
                     const Rows& rows_arguments, std::int64_t rows,
                     std::int64_t chunk, CUstream_st* stream);
  const Function& function(FallbackKernel kernel);

  Device& device_;
  cache::ForkSafeMutex mutex_;
  std::vector<std::unique_ptr<const Function>> loaded_;
  std::array<std::atomic<const Function*>, kFallbackKernels.size()>
      functions_{};
};

/// The kernel that stands in for those of `spec`. Of one that computes values
/// and gradient at once there is none: its call becomes two.
FallbackKernel fallback_kernel(const KernelSpec& spec);

}  // namespace logpjit::runtime
