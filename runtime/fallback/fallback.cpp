// Loads embedded images and launches them chunk by chunk.
#include "runtime/fallback/fallback.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "logpjit/error.hpp"
#include "runtime/operations/check.hpp"

namespace logpjit::runtime {
namespace {

/// As of the templates' `vocab`.
constexpr std::int64_t kMostColumns = std::int64_t{1} << 30;
constexpr std::int64_t kMostRows = INT32_MAX;

/// The newest of the CUDA targets that the GPU takes, or the CPU's.
std::string target_of(const Device& device) {
  const DeviceInfo& info = device.info();
  if (info.id.kind != DeviceKind::kCuda) return device.target();
  std::string chosen(kFallbackCudaTargets.front().name);
  for (const FallbackCudaTarget& target : kFallbackCudaTargets) {
    if (10 * info.major + info.minor >= target.capability) {
      chosen = target.name;
    }
  }
  return chosen;
}

cache::Image image_for(const Device& device, FallbackKernel kernel) {
  const std::string target = target_of(device);
  for (const EmbeddedImage& embedded : embedded_images()) {
    if (embedded.kernel != name(kernel) || embedded.target != target) continue;
    cache::Image image;
    image.kind = embedded.kind;
    image.entry = embedded.entry;
    image.bytes.resize(embedded.bytes.size());
    std::memcpy(image.bytes.data(), embedded.bytes.data(),
                embedded.bytes.size());
    return image;
  }
  throw Error(ErrorCode::kUnavailable,
              fmt::format("this build of logpjit carries no {} for {}: {}",
                          name(kernel), target,
                          device.info().id.kind == DeviceKind::kCuda
                              ? why_no_cuda_images()
                              : "it was built on another kind of machine"));
}

device::FallbackCall call_of(const KernelSpec& spec) {
  static_assert(static_cast<int>(DType::kFp32) == device::kFp32 &&
                static_cast<int>(DType::kBf16) == device::kBf16 &&
                static_cast<int>(DType::kFp16) == device::kFp16 &&
                static_cast<int>(DType::kInt32) == device::kInt32 &&
                static_cast<int>(DType::kInt64) == device::kInt64);
  return {.vocab = spec.vocab,
          .first_row = 0,
          .logits = static_cast<int>(spec.logits),
          .other = static_cast<int>(spec.other),
          .ids = static_cast<int>(spec.ids),
          .terms = static_cast<int>(spec.terms),
          .accumulate = spec.store == GradStore::kAccumulate ? 1 : 0,
          .softcap = spec.softcap ? 1 : 0};
}

}  // namespace

FallbackKernel fallback_kernel(const KernelSpec& spec) {
  const bool forward = spec.pass == Pass::kForward;
  if (has(spec.terms, Terms::kKl)) {
    return forward ? FallbackKernel::kKlStatistics
                   : FallbackKernel::kKlGradient;
  }
  return forward ? FallbackKernel::kStatistics : FallbackKernel::kGradient;
}

void Fallback::prepare(FallbackKernel kernel) { function(kernel); }

const Function& Fallback::function(FallbackKernel kernel) {
  std::atomic<const Function*>& place =
      functions_[static_cast<std::size_t>(kernel)];
  if (const Function* ready = place.load(std::memory_order_acquire)) {
    return *ready;
  }
  auto loaded =
      device_.load(image_for(device_, kernel), device::kFallbackSharedBytes);
  const std::lock_guard lock(mutex_);
  // One that another thread was faster than stays too: unloading it would end
  // stream captures.
  loaded_.push_back(std::move(loaded));
  if (place.load(std::memory_order_acquire) == nullptr) {
    place.store(loaded_.back().get(), std::memory_order_release);
  }
  return *place.load(std::memory_order_acquire);
}

template <typename Arguments, typename Rows>
void Fallback::launch_chunks(FallbackKernel kernel, const KernelSpec& spec,
                             const Rows& rows_arguments, std::int64_t rows,
                             std::int64_t chunk, CUstream_st* stream) {
  if (spec.vocab > kMostColumns) {
    refuse(spec.op(), "vocab",
           fmt::format("{} is above {}", spec.vocab, kMostColumns));
  }
  Arguments arguments{call_of(spec), rows_arguments};
  LaunchShape shape{.block = device::kFallbackBlock,
                    .dynamic_shared_bytes = device::kFallbackSharedBytes};
  const Function& loaded = function(kernel);
  chunk = std::min(chunk, kMostRows);
  for (std::int64_t first = 0; first < rows; first += chunk) {
    arguments.call.first_row = first;
    shape.grid = static_cast<std::uint32_t>(std::min(chunk, rows - first));
    device_.launch(loaded, shape, stream, &arguments, sizeof arguments);
  }
}

void Fallback::launch(const KernelSpec& spec,
                      const device::RowStatisticsArguments& arguments,
                      std::int64_t rows, std::int64_t chunk,
                      CUstream_st* stream) {
  launch_chunks<device::FallbackStatisticsArguments>(
      FallbackKernel::kStatistics, spec, arguments, rows, chunk, stream);
}

void Fallback::launch(const KernelSpec& spec,
                      const device::RowGradientArguments& arguments,
                      std::int64_t rows, std::int64_t chunk,
                      CUstream_st* stream) {
  launch_chunks<device::FallbackGradientArguments>(
      FallbackKernel::kGradient, spec, arguments, rows, chunk, stream);
}

void Fallback::launch(const KernelSpec& spec,
                      const device::KlStatisticsArguments& arguments,
                      std::int64_t rows, std::int64_t chunk,
                      CUstream_st* stream) {
  launch_chunks<device::FallbackKlStatisticsArguments>(
      FallbackKernel::kKlStatistics, spec, arguments, rows, chunk, stream);
}

void Fallback::launch(const KernelSpec& spec,
                      const device::KlGradientArguments& arguments,
                      std::int64_t rows, std::int64_t chunk,
                      CUstream_st* stream) {
  launch_chunks<device::FallbackKlGradientArguments>(
      FallbackKernel::kKlGradient, spec, arguments, rows, chunk, stream);
}

void Fallback::gather(const device::GatherArguments& arguments,
                      std::int64_t rows, CUstream_st* stream) {
  if (rows > kMostRows) {
    refuse("copy", "logits",
           fmt::format("{} rows are more than {}", rows, kMostRows));
  }
  const LaunchShape shape{.grid = static_cast<std::uint32_t>(rows),
                          .block = device::kFallbackBlock};
  if (rows == 0) return;
  device_.launch(function(FallbackKernel::kGather), shape, stream, &arguments,
                 sizeof arguments);
}

}  // namespace logpjit::runtime
