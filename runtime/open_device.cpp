// The one place that knows which devices and compilers there are.
#include "runtime/open_device.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "logpjit/error.hpp"
#include "runtime/cpu/cpu_device.hpp"
#include "runtime/cpu/host_compiler.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/cuda/nvrtc_compiler.hpp"

namespace logpjit::runtime {
namespace {

const cuda::Driver& open_driver(const Options& options) {
  // The driver reads it once, when it is initialised.
  if (options.caches_off) ::setenv("CUDA_CACHE_DISABLE", "1", 1);
  return cuda::Driver::open(options.driver_library, options.library_folders);
}

std::unique_ptr<Device> open_cpu(const Options& options) {
  return std::make_unique<CpuDevice>(
      CpuDeviceOptions{.threads = options.cpu_threads});
}

}  // namespace

DeviceId parse_device(std::string_view text) {
  if (text == "cpu") return {DeviceKind::kCpu, 0};
  if (text == "cuda") return {DeviceKind::kCuda, 0};
  constexpr std::string_view kPrefix = "cuda:";
  if (text.starts_with(kPrefix)) {
    const std::string_view number = text.substr(kPrefix.size());
    int index = -1;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), index);
    if (error == std::errc{} && end == number.data() + number.size() &&
        index >= 0) {
      return {DeviceKind::kCuda, index};
    }
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("device '{}' is none of cpu, cuda and cuda:<number>", text));
}

std::unique_ptr<Device> open_device(const Options& options) {
  const DeviceId id = parse_device(options.device);
  if (id.kind == DeviceKind::kCpu) return open_cpu(options);
  return std::make_unique<cuda::CudaDevice>(open_driver(options), id.index);
}

std::unique_ptr<Compiler> make_compiler(const Options& options) {
  if (parse_device(options.device).kind == DeviceKind::kCpu) {
    return std::make_unique<HostCompiler>(
        HostCompilerOptions{.compiler = options.host_compiler,
                            .timeout_s = options.compile_timeout_s});
  }
  return std::make_unique<cuda::NvrtcCompiler>(options.nvrtc_library,
                                               options.library_folders);
}

std::vector<DeviceInfo> list_devices(const Options& options,
                                     std::vector<std::string>& why_not) {
  std::vector<DeviceInfo> devices{open_cpu(options)->info()};
  try {
    const cuda::Driver& driver = open_driver(options);
    for (int i = 0; i < cuda::device_count(driver); ++i) {
      devices.push_back(cuda::CudaDevice(driver, i).info());
    }
  } catch (const Error& error) {
    why_not.push_back(error.message());
  }
  return devices;
}

}  // namespace logpjit::runtime
