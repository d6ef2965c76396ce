// Loading, launching and copying on a GPU.
#include "runtime/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "logpjit/error.hpp"
#include "runtime/cuda/cuda_objects.hpp"
#include "runtime/cuda/nvml.hpp"

namespace logpjit::runtime::cuda {
namespace {

CUdeviceptr address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

CUdevice get_device(const Driver& driver, int index) {
  const int count = device_count(driver);
  if (index < 0 || index >= count) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("there is no device cuda:{}; the driver shows {} "
                            "GPU(s)",
                            index, count));
  }
  CUdevice device = 0;
  driver.check(driver.device_get(&device, index), "cuDeviceGet");
  return device;
}

DeviceInfo read_info(const Driver& driver, CUdevice device, int index) {
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    driver.check(driver.device_get_attribute(&value, which, device),
                 "cuDeviceGetAttribute");
    return value;
  };
  DeviceInfo info;
  info.id = {DeviceKind::kCuda, index};
  char text[256] = {};
  driver.check(driver.device_get_name(text, sizeof text - 1, device),
               "cuDeviceGetName");
  info.name = text;
  info.software = fmt::format("CUDA driver {}.{}", driver.version() / 1000,
                              driver.version() % 1000 / 10);
  info.major = attribute(kComputeCapabilityMajor);
  info.minor = attribute(kComputeCapabilityMinor);
  info.multiprocessors = attribute(kMultiprocessorCount);
  info.l2_bytes = attribute(kL2Bytes);
  info.shared_bytes_per_block = attribute(kSharedBytesPerBlockOptin);
  info.shared_bytes_per_multiprocessor =
      attribute(kSharedBytesPerMultiprocessor);
  std::size_t bytes = 0;
  driver.check(driver.device_total_mem(&bytes, device), "cuDeviceTotalMem");
  info.memory_bytes = static_cast<std::int64_t>(bytes);
  // Two transfers a clock; kHz times bits over 8 million is GB/s.
  info.memory_gb_per_s = std::int64_t{2} * attribute(kMemoryClockKhz) *
                         attribute(kMemoryBusBits) / 8 / 1'000'000;
  return info;
}

/// A graph with the stream it runs on.
class CapturedWork final : public Graph {
 public:
  CapturedWork(CudaDevice& device, const Driver& driver,
               const PrimaryContext& context,
               const std::function<void(CUstream_st*)>& work)
      : device_(device), context_(context) {
    stream_.emplace(driver);
    graph_.emplace(driver, stream_->get(), work);
  }
  ~CapturedWork() override {
    try_in_context(context_, [&] {
      graph_.reset();
      stream_.reset();
    });
  }
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;

  double replay_ms() override {
    return in_context(context_, [&] {
      const auto begin = device_.record(stream_->get());
      graph_->launch(stream_->get());
      const auto end = device_.record(stream_->get());
      return device_.elapsed_ms(*begin, *end);
    });
  }

 private:
  CudaDevice& device_;
  const PrimaryContext& context_;
  std::optional<CudaStream> stream_;
  std::optional<CudaGraph> graph_;
};

}  // namespace

int device_count(const Driver& driver) {
  int count = 0;
  driver.check(driver.device_get_count(&count), "cuDeviceGetCount");
  return count;
}

CudaDevice::CudaDevice(const Driver& driver, int index)
    : driver_(driver),
      device_(get_device(driver, index)),
      context_(driver, device_),
      info_(read_info(driver, device_, index)) {}

std::string CudaDevice::target() const {
  return fmt::format("sm_{}{}{}", info_.major, info_.minor,
                     info_.major >= 9 ? "a" : "");
}

std::unique_ptr<Function> CudaDevice::load(const cache::Image& image,
                                           std::uint32_t dynamic_shared_bytes) {
  return in_context(context_, [&] {
    return std::make_unique<CudaFunction>(driver_, device_, image,
                                          dynamic_shared_bytes);
  });
}

void CudaDevice::launch(const Function& function, const LaunchShape& shape,
                        CUstream_st* stream, const void* arguments,
                        std::size_t) {
  // Set only where it is passed: clearing it would cost what a check costs.
  LaunchAttribute cluster;
  if (shape.cluster > 1) {
    cluster = {};
    cluster.id = kClusterDimension;
    cluster.value.cluster = {shape.cluster, 1, 1};
  }
  const LaunchConfiguration configuration{shape.grid,
                                          1,
                                          1,
                                          shape.block,
                                          1,
                                          1,
                                          shape.dynamic_shared_bytes,
                                          stream,
                                          &cluster,
                                          shape.cluster > 1 ? 1u : 0u};
  void* parameters[] = {const_cast<void*>(arguments)};
  const auto& cuda_function = static_cast<const CudaFunction&>(function);
  in_context(
      context_,
      [&] {
        driver_.check(
            driver_.launch_kernel_ex(&configuration, cuda_function.get(),
                                     parameters, nullptr),
            "cuLaunchKernelEx");
      },
      [&] { cuda_function.set_attributes(); });
}

std::unique_ptr<Buffer> CudaDevice::allocate(std::size_t bytes) {
  return in_context(context_, [&] {
    return std::make_unique<CudaBuffer>(driver_, context_, bytes);
  });
}

void CudaDevice::copy_in(void* to, const void* from, std::size_t bytes) {
  in_context(context_, [&] {
    driver_.check(driver_.memcpy_htod(address(to), from, bytes),
                  "cuMemcpyHtoD");
  });
}

void CudaDevice::copy_out(void* to, const void* from, std::size_t bytes) {
  in_context(context_, [&] {
    driver_.check(driver_.memcpy_dtoh(to, address(from), bytes),
                  "cuMemcpyDtoH");
  });
}

void CudaDevice::fill(void* to, std::uint8_t value, std::size_t bytes) {
  in_context(context_, [&] {
    driver_.check(driver_.memset_d8(address(to), value, bytes), "cuMemsetD8");
  });
}

void CudaDevice::copy(void* to, const void* from, std::size_t bytes,
                      CUstream_st* stream) {
  in_context(context_, [&] {
    driver_.check(
        driver_.memcpy_async(address(to), address(from), bytes, stream),
        "cuMemcpyAsync");
  });
}

void CudaDevice::synchronize() {
  in_context(context_, [&] {
    driver_.check(driver_.ctx_synchronize(), "cuCtxSynchronize");
  });
}

std::size_t CudaDevice::free_bytes() const {
  return in_context(context_, [&] {
    std::size_t free = 0;
    std::size_t total = 0;
    driver_.check(driver_.mem_get_info(&free, &total), "cuMemGetInfo");
    return free;
  });
}

std::unique_ptr<Event> CudaDevice::make_event() {
  return in_context(
      context_, [&] { return std::make_unique<CudaEvent>(driver_, context_); });
}

void CudaDevice::mark(Event& event, CUstream_st* stream) {
  in_context(context_, [&] {
    driver_.check(
        driver_.event_record(static_cast<CudaEvent&>(event).get(), stream),
        "cuEventRecord");
  });
}

void CudaDevice::wait_for(CUstream_st* stream, const Event& event) {
  in_context(context_, [&] {
    driver_.check(driver_.stream_wait_event(
                      stream, static_cast<const CudaEvent&>(event).get(), 0),
                  "cuStreamWaitEvent");
  });
}

bool CudaDevice::reached(const Event& event) {
  return in_context(context_, [&] {
    const CUresult result =
        driver_.event_query(static_cast<const CudaEvent&>(event).get());
    if (result == kNotReady) return false;
    driver_.check(result, "cuEventQuery");
    return true;
  });
}

std::unique_ptr<Buffer> CudaDevice::allocate_host(std::size_t bytes) {
  return in_context(context_, [&] {
    return std::make_unique<CudaHostBuffer>(driver_, context_, bytes);
  });
}

void CudaDevice::bind_thread() { context_.push(); }

CUstream_st* CudaDevice::make_stream() {
  return in_context(context_, [&] {
    CUstream_st* stream = nullptr;
    driver_.check(driver_.stream_create(&stream, kStreamNonBlocking),
                  "cuStreamCreate");
    return stream;
  });
}

void CudaDevice::free_stream(CUstream_st* stream) {
  in_context(context_, [&] {
    driver_.check(driver_.stream_destroy(stream), "cuStreamDestroy");
  });
}

std::unique_ptr<Event> CudaDevice::record(CUstream_st* stream) {
  return in_context(context_, [&] {
    auto event = std::make_unique<CudaEvent>(driver_, context_);
    driver_.check(driver_.event_record(event->get(), stream), "cuEventRecord");
    return event;
  });
}

double CudaDevice::elapsed_ms(const Event& begin, const Event& end) {
  return in_context(context_, [&] {
    CUevent_st* last = static_cast<const CudaEvent&>(end).get();
    driver_.check(driver_.event_synchronize(last), "cuEventSynchronize");
    float ms = 0;
    driver_.check(driver_.event_elapsed_time(
                      &ms, static_cast<const CudaEvent&>(begin).get(), last),
                  "cuEventElapsedTime");
    return double{ms};
  });
}

std::unique_ptr<Graph> CudaDevice::capture(
    std::function<void(CUstream_st*)> work) {
  return in_context(context_, [&] {
    return std::make_unique<CapturedWork>(*this, driver_, context_, work);
  });
}

std::unique_ptr<ClockMeter> CudaDevice::make_clock_meter() {
  char bus_id[32] = {};
  const CUresult result =
      driver_.device_get_pci_bus_id(bus_id, sizeof bus_id - 1, device_);
  return result == kSuccess ? make_nvml_meter(bus_id, driver_.folder())
                            : nullptr;
}

bool CudaDevice::is_capturing(CUstream_st* stream) const {
  return in_context(context_, [&] {
    int status = 0;
    const CUresult result = driver_.stream_is_capturing(stream, &status);
    if (result == kContextIsDestroyed) {
      driver_.check(result, "cuStreamIsCapturing");
    }
    // The legacy stream cannot be asked while another one is being captured.
    return result == kCaptureImplicit || (result == kSuccess && status != 0);
  });
}

}  // namespace logpjit::runtime::cuda
