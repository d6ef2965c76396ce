// The few types of the CUDA driver API that logpjit uses, so that building
// needs no toolkit. Layouts and values are the driver's stable ABI.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUevent_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUkern_st;
struct CUlib_st;
struct CUstream_st;

namespace logpjit::runtime::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;

inline constexpr CUresult kSuccess = 0;
inline constexpr CUresult kInvalidValue = 1;
inline constexpr CUresult kInvalidImage = 200;
inline constexpr CUresult kNoBinaryForGpu = 209;
inline constexpr CUresult kInvalidPtx = 218;
inline constexpr CUresult kJitCompilerNotFound = 221;
inline constexpr CUresult kUnsupportedPtxVersion = 222;
inline constexpr CUresult kJitCompilationDisabled = 223;
inline constexpr CUresult kInvalidSource = 300;
inline constexpr CUresult kFileNotFound = 301;
inline constexpr CUresult kSymbolNotFound = 302;
inline constexpr CUresult kSharedObjectInitFailed = 303;
inline constexpr CUresult kNotFound = 500;
inline constexpr CUresult kNotReady = 600;
inline constexpr CUresult kContextIsDestroyed = 709;
/// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT.
inline constexpr CUresult kCaptureImplicit = 906;
inline constexpr CUresult kUnknown = 999;

struct CUuuid {
  char bytes[16];
};

enum DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kSharedBytesPerMultiprocessor = 81,
  kSharedBytesPerBlockOptin = 97,
};

enum FunctionAttribute : int {
  kMaxDynamicSharedBytes = 8,
  kNonPortableClusterSizeAllowed = 14,
};

enum LaunchAttributeId : unsigned {
  kClusterDimension = 4,
};

struct LaunchAttribute {
  LaunchAttributeId id;
  char padding[8 - sizeof(unsigned)];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
  } value;
};

struct LaunchConfiguration {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned dynamic_shared_bytes;
  CUstream_st* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72);
static_assert(sizeof(LaunchConfiguration) == 56);

enum CaptureMode : int { kCaptureThreadLocal = 1 };
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;

}  // namespace logpjit::runtime::cuda
