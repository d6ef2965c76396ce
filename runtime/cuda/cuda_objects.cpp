// Construction and destruction of driver handles.
#include "runtime/cuda/cuda_objects.hpp"

#include <fmt/format.h>

namespace logpjit::runtime::cuda {
namespace {

/// The image's bytes; PTX gets the NUL that the driver reads up to.
std::vector<std::byte> loadable_bytes(const cache::Image& image) {
  std::vector<std::byte> bytes = image.bytes;
  if (image.kind == cache::ImageKind::kPtx) bytes.push_back(std::byte{0});
  return bytes;
}

}  // namespace

CudaFunction::CudaFunction(const Driver& driver, CUdevice device,
                           const cache::Image& image,
                           std::uint32_t dynamic_shared_bytes)
    : driver_(driver),
      device_(device),
      dynamic_shared_bytes_(dynamic_shared_bytes) {
  const std::vector<std::byte> bytes = loadable_bytes(image);
  // A library that fails below stays loaded, unused: unloading would kill a
  // stream capture that is under way.
  CUlib_st* library = nullptr;
  check(driver.library_load_data(&library, bytes.data(), nullptr, nullptr, 0,
                                 nullptr, nullptr, 0),
        "cuLibraryLoadData");
  check(driver.library_get_kernel(&kernel_, library, image.entry.c_str()),
        "cuLibraryGetKernel");
  // Resolving loads the code now, not at the first launch. What is launched is
  // the kernel: unlike the function it survives a context reset.
  CUfunc_st* resolved = nullptr;
  check(driver.kernel_get_function(&resolved, kernel_), "cuKernelGetFunction");
  function_ = reinterpret_cast<CUfunc_st*>(kernel_);
  set_attributes();
}

void CudaFunction::set_attributes() const {
  constexpr std::uint32_t kAlwaysAllowed = 48 * 1024;
  if (dynamic_shared_bytes_ > kAlwaysAllowed) {
    check(driver_.kernel_set_attribute(kMaxDynamicSharedBytes,
                                       static_cast<int>(dynamic_shared_bytes_),
                                       kernel_, device_),
          "cuKernelSetAttribute");
  }
  // Clusters of 16 need leave; older GPUs have no such attribute.
  driver_.kernel_set_attribute(kNonPortableClusterSizeAllowed, 1, kernel_,
                               device_);
}

void CudaFunction::check(CUresult result, const char* call) const {
  if (result == kSuccess) return;
  const std::string message =
      fmt::format("{} failed: {}{}", call, driver_.describe(result),
                  result == kUnsupportedPtxVersion
                      ? "; the driver is older than NVRTC: update the driver, "
                        "or name an older NVRTC with LOGPJIT_NVRTC"
                      : "");
  if (result == kContextIsDestroyed) driver_.check(result, call);
  if (blames_image(result)) throw Error(ErrorCode::kDriver, message);
  throw DeviceTrouble(ErrorCode::kDriver, message);
}

CudaBuffer::CudaBuffer(const Driver& driver, const PrimaryContext& context,
                       std::size_t bytes)
    : driver_(driver), context_(context) {
  CUdeviceptr pointer = 0;
  if (bytes > 0) {
    driver_.check(driver_.mem_alloc(&pointer, bytes), "cuMemAlloc");
  }
  data_ = reinterpret_cast<void*>(pointer);
  size_ = bytes;
}

CudaBuffer::~CudaBuffer() {
  if (data_ == nullptr) return;
  try_in_context(context_, [&] {
    driver_.mem_free(reinterpret_cast<CUdeviceptr>(data_));
  });
}

CudaHostBuffer::CudaHostBuffer(const Driver& driver,
                               const PrimaryContext& context, std::size_t bytes)
    : driver_(driver), context_(context) {
  driver_.check(driver_.mem_host_alloc(&data_, bytes, 0), "cuMemHostAlloc");
  size_ = bytes;
}

CudaHostBuffer::~CudaHostBuffer() {
  try_in_context(context_, [&] { driver_.mem_free_host(data_); });
}

CudaEvent::CudaEvent(const Driver& driver, const PrimaryContext& context)
    : driver_(driver), context_(context) {
  driver_.check(driver_.event_create(&event_, kEventDefault), "cuEventCreate");
}

CudaEvent::~CudaEvent() {
  try_in_context(context_, [&] { driver_.event_destroy(event_); });
}

CudaStream::CudaStream(const Driver& driver) : driver_(driver) {
  driver_.check(driver_.stream_create(&stream_, kStreamNonBlocking),
                "cuStreamCreate");
}

CudaStream::~CudaStream() { driver_.stream_destroy(stream_); }

CudaGraph::CudaGraph(const Driver& driver, CUstream_st* stream,
                     const std::function<void(CUstream_st*)>& work)
    : driver_(driver) {
  driver_.check(driver_.stream_begin_capture(stream, kCaptureThreadLocal),
                "cuStreamBeginCapture");
  try {
    work(stream);
  } catch (...) {
    driver_.stream_end_capture(stream, &graph_);
    if (graph_ != nullptr) driver_.graph_destroy(graph_);
    throw;
  }
  driver_.check(driver_.stream_end_capture(stream, &graph_),
                "cuStreamEndCapture");
  const CUresult result = driver_.graph_instantiate(&executable_, graph_, 0);
  if (result != kSuccess) driver_.graph_destroy(graph_);
  driver_.check(result, "cuGraphInstantiate");
}

CudaGraph::~CudaGraph() {
  driver_.graph_exec_destroy(executable_);
  driver_.graph_destroy(graph_);
}

void CudaGraph::launch(CUstream_st* stream) const {
  driver_.check(driver_.graph_launch(executable_, stream), "cuGraphLaunch");
}

}  // namespace logpjit::runtime::cuda
