// libcuda's functions as far as logpjit calls them, running nothing: contexts,
// libraries and kernels behave as measured on a real driver.
#include "tests/support/fake_driver/fake_driver.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "runtime/cuda/driver_types.hpp"

struct CUctx_st {
  int device = 0;
  bool alive = false;
};
struct CUkern_st {
  std::string image;
  std::vector<int> resolved_on;
};
struct CUlib_st {
  CUkern_st kernel;
};

namespace {

using namespace logpjit::runtime::cuda;
using logpjit::testing::FakeDriver;

constexpr CUresult kInvalidContext = 201;
constexpr CUresult kInvalidDevice = 101;
constexpr int kMostDevices = 8;

FakeDriver& state() {
  static auto* const instance = new FakeDriver;
  return *instance;
}

CUctx_st* context_of(int device) {
  static CUctx_st contexts[kMostDevices];
  contexts[device].device = device;
  return &contexts[device];
}

thread_local std::vector<CUctx_st*> stack;

CUctx_st* current() { return stack.empty() ? nullptr : stack.back(); }

/// What a test has set for this call; 0 without.
CUresult set_answer(const char* symbol) {
  FakeDriver& fake = state();
  const auto answer = fake.answers.extract(symbol);
  return answer.empty() ? fake.all_answer : answer.mapped();
}

/// The answer of a call that needs a context.
CUresult in_context(const char* symbol) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult answer = set_answer(symbol)) return answer;
  if (current() == nullptr) return kInvalidContext;
  return current()->alive ? kSuccess : kContextIsDestroyed;
}

CUresult without_context(const char* symbol) {
  const std::lock_guard lock(state().mutex);
  return set_answer(symbol);
}

CUresult judge(const std::string& image, int capability) {
  if (image.starts_with("FAKE:")) return std::atoi(image.c_str() + 5);
  if (!image.starts_with("sm_")) return kInvalidImage;
  return std::atoi(image.c_str() + 3) == capability ? kSuccess
                                                    : kNoBinaryForGpu;
}

/// Code reaches a context once.
CUresult resolve(CUkern_st& kernel) {
  const std::lock_guard lock(state().mutex);
  const int device = current()->device;
  for (const int done : kernel.resolved_on) {
    if (done == device) return kSuccess;
  }
  kernel.resolved_on.push_back(device);
  state().loads.push_back({device, kernel.image});
  return kSuccess;
}

}  // namespace

namespace logpjit::testing {

void FakeDriver::reset_context(int device) {
  context_of(device)->alive = false;
}

int FakeDriver::current_device() {
  return current() == nullptr ? -1 : current()->device;
}

void FakeDriver::set_current(int device) {
  stack.clear();
  if (device >= 0) stack.push_back(context_of(device));
}

void FakeDriver::forget() {
  const std::lock_guard lock(mutex);
  devices = {90};
  answers.clear();
  all_answer = 0;
  loads.clear();
  launches.clear();
  stack.clear();
}

}  // namespace logpjit::testing

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE logpjit::testing::FakeDriver* logpjit_fake_driver() { return &state(); }

FAKE CUresult cuGetErrorName(CUresult, const char** text) {
  *text = "FAKE_ERROR";
  return kSuccess;
}
FAKE CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "a pretended error";
  return kSuccess;
}
FAKE CUresult cuInit(unsigned) { return without_context("cuInit"); }
FAKE CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
FAKE CUresult cuDeviceGetCount(int* count) {
  *count = static_cast<int>(state().devices.size());
  return kSuccess;
}
FAKE CUresult cuDeviceGet(CUdevice* device, int index) {
  *device = index;
  return kSuccess;
}
FAKE CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "pretended GPU", static_cast<std::size_t>(size));
  return kSuccess;
}
FAKE CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  std::snprintf(id, static_cast<std::size_t>(size), "0000:%02X:00.0", device);
  return without_context("cuDeviceGetPCIBusId");
}
FAKE CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  const int capability = state().devices.at(static_cast<std::size_t>(device));
  switch (attribute) {
    case kComputeCapabilityMajor:
      *value = capability / 10;
      break;
    case kComputeCapabilityMinor:
      *value = capability % 10;
      break;
    case kSharedBytesPerBlockOptin:
      *value = 232448;
      break;
    default:
      *value = 128;
  }
  return kSuccess;
}
FAKE CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  *bytes = std::size_t{1} << 30;
  return kSuccess;
}

FAKE CUresult cuDevicePrimaryCtxRetain(CUctx_st** context, CUdevice device) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult answer = set_answer("cuDevicePrimaryCtxRetain")) {
    return answer;
  }
  if (device >= static_cast<int>(state().devices.size())) return kInvalidDevice;
  ++state().retained;
  *context = context_of(device);
  (*context)->alive = true;
  return kSuccess;
}
FAKE CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  const std::lock_guard lock(state().mutex);
  --state().retained;
  return kSuccess;
}
FAKE CUresult cuCtxGetCurrent(CUctx_st** context) {
  if (const CUresult answer = without_context("cuCtxGetCurrent")) return answer;
  *context = current();
  return kSuccess;
}
FAKE CUresult cuCtxPushCurrent_v2(CUctx_st* context) {
  if (const CUresult answer = without_context("cuCtxPushCurrent")) {
    return answer;
  }
  if (!context->alive) return kContextIsDestroyed;
  stack.push_back(context);
  return kSuccess;
}
FAKE CUresult cuCtxPopCurrent_v2(CUctx_st** context) {
  if (stack.empty()) return kInvalidContext;
  *context = stack.back();
  stack.pop_back();
  return kSuccess;
}
FAKE CUresult cuCtxSynchronize() { return in_context("cuCtxSynchronize"); }

FAKE CUresult cuLibraryLoadData(CUlib_st** library, const void* image, int*,
                                void**, unsigned, int*, void**, unsigned) {
  if (const CUresult answer = in_context("cuLibraryLoadData")) return answer;
  constexpr std::size_t kLooked = 8;
  char text[kLooked + 1] = {};
  std::memcpy(text, image, kLooked);
  *library = new CUlib_st{{text, {}}};
  return kSuccess;
}
FAKE CUresult cuLibraryGetKernel(CUkern_st** kernel, CUlib_st* library,
                                 const char*) {
  if (const CUresult answer = in_context("cuLibraryGetKernel")) return answer;
  *kernel = &library->kernel;
  return judge(library->kernel.image,
               state().devices.at(static_cast<std::size_t>(current()->device)));
}
FAKE CUresult cuKernelGetFunction(CUfunc_st** function, CUkern_st* kernel) {
  if (const CUresult answer = in_context("cuKernelGetFunction")) return answer;
  *function = reinterpret_cast<CUfunc_st*>(kernel);
  return resolve(*kernel);
}
FAKE CUresult cuKernelSetAttribute(int, int, CUkern_st*, CUdevice) {
  return without_context("cuKernelSetAttribute");
}
FAKE CUresult cuLaunchKernelEx(const LaunchConfiguration*, CUfunc_st* function,
                               void**, void**) {
  if (const CUresult answer = in_context("cuLaunchKernelEx")) return answer;
  auto& kernel = *reinterpret_cast<CUkern_st*>(function);
  resolve(kernel);
  const std::lock_guard lock(state().mutex);
  state().launches.push_back({current()->device, kernel.image});
  return kSuccess;
}

FAKE CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  if (const CUresult answer = in_context("cuMemAlloc")) return answer;
  *pointer = reinterpret_cast<CUdeviceptr>(std::malloc(bytes));
  return kSuccess;
}
FAKE CUresult cuMemFree_v2(CUdeviceptr pointer) {
  if (const CUresult answer = in_context("cuMemFree")) return answer;
  std::free(reinterpret_cast<void*>(pointer));
  return kSuccess;
}

// What exists so that the table can be filled, and answers success.
#define FAKE_SUCCESS(symbol, arguments) \
  FAKE CUresult symbol arguments { return in_context(#symbol); }
FAKE_SUCCESS(cuMemGetInfo_v2, (std::size_t*, std::size_t*))
FAKE_SUCCESS(cuMemcpyHtoD_v2, (CUdeviceptr, const void*, std::size_t))
FAKE_SUCCESS(cuMemcpyDtoH_v2, (void*, CUdeviceptr, std::size_t))
FAKE_SUCCESS(cuMemcpyAsync,
             (CUdeviceptr, CUdeviceptr, std::size_t, CUstream_st*))
FAKE_SUCCESS(cuMemHostAlloc, (void**, std::size_t, unsigned))
FAKE_SUCCESS(cuMemFreeHost, (void*))
FAKE_SUCCESS(cuMemsetD8_v2, (CUdeviceptr, unsigned char, std::size_t))
FAKE_SUCCESS(cuStreamCreate, (CUstream_st**, unsigned))
FAKE_SUCCESS(cuStreamDestroy_v2, (CUstream_st*))
FAKE_SUCCESS(cuStreamSynchronize, (CUstream_st*))
FAKE_SUCCESS(cuStreamWaitEvent, (CUstream_st*, CUevent_st*, unsigned))
FAKE_SUCCESS(cuStreamBeginCapture_v2, (CUstream_st*, int))
FAKE_SUCCESS(cuStreamEndCapture, (CUstream_st*, CUgraph_st**))
FAKE_SUCCESS(cuStreamIsCapturing, (CUstream_st*, int*))
FAKE_SUCCESS(cuEventCreate, (CUevent_st**, unsigned))
FAKE_SUCCESS(cuEventDestroy_v2, (CUevent_st*))
FAKE_SUCCESS(cuEventRecord, (CUevent_st*, CUstream_st*))
FAKE_SUCCESS(cuEventQuery, (CUevent_st*))
FAKE_SUCCESS(cuEventSynchronize, (CUevent_st*))
FAKE_SUCCESS(cuEventElapsedTime, (float*, CUevent_st*, CUevent_st*))
FAKE_SUCCESS(cuGraphInstantiateWithFlags,
             (CUgraphExec_st**, CUgraph_st*, unsigned long long))
FAKE_SUCCESS(cuGraphLaunch, (CUgraphExec_st*, CUstream_st*))
FAKE_SUCCESS(cuGraphExecDestroy, (CUgraphExec_st*))
FAKE_SUCCESS(cuGraphDestroy, (CUgraph_st*))
