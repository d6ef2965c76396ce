// The kernels that are built with the project and carried by the library.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "cache/image.hpp"

namespace logpjit::runtime {

/// Kernels of templates/fallback*.cuh and gather.cuh.
enum class FallbackKernel {
  kStatistics,
  kGradient,
  kKlStatistics,
  kKlGradient,
  kGather,
};
inline constexpr std::array<std::string_view, 5> kFallbackKernels{
    "fallback_statistics", "fallback_gradient", "fallback_kl_statistics",
    "fallback_kl_gradient", "gather_rows"};

constexpr std::string_view name(FallbackKernel kernel) {
  return kFallbackKernels[static_cast<std::size_t>(kernel)];
}

/// What CUDA images are made for: PTX that every GPU from that compute
/// capability on takes, and every driver from CUDA 12.0 on.
struct FallbackCudaTarget {
  std::string_view name;
  int capability;
};
inline constexpr std::array<FallbackCudaTarget, 2> kFallbackCudaTargets{
    {{"compute_75", 75}, {"compute_80", 80}}};

struct EmbeddedImage {
  std::string_view kernel;
  /// One of the above, or a host target as CpuDevice::target() says it.
  std::string_view target;
  cache::ImageKind kind = cache::ImageKind::kPtx;
  std::string_view entry;
  std::string_view bytes;
};

/// Written by logpjit-embed-fallback during the build.
std::span<const EmbeddedImage> embedded_images();
/// Why there are no CUDA images among them; empty when there are.
std::string_view why_no_cuda_images();

}  // namespace logpjit::runtime
