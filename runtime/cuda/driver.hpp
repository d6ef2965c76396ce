// The CUDA driver as a table of functions, opened at run time.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/cuda/driver_types.hpp"
#include "runtime/device.hpp"
#include "runtime/dynamic_library.hpp"

namespace logpjit::runtime::cuda {

/// The context was reset: there is a new one to be had.
class ContextLost : public DeviceTrouble {
 public:
  using DeviceTrouble::DeviceTrouble;
};

/// Opened once per file and kept for the life of the process. Immutable.
class Driver {
 public:
  /// Error{kUnavailable} with the sentence why not: no library, too old a
  /// driver (the missing function is named), or cuInit's own answer.
  static const Driver& open(const std::string& explicit_file,
                            const std::vector<std::filesystem::path>& folders);

#define LOGPJIT_CUDA(name, symbol, arguments) \
  CUresult(*name) arguments = nullptr;
#include "runtime/cuda/driver_functions.inc"
#undef LOGPJIT_CUDA

  /// Throws Error{kDriver} unless `result` is success (ContextLost where that
  /// is why); `call` names what was called ("cuLibraryLoadData").
  void check(CUresult result, const char* call) const {
    if (result != kSuccess) fail(result, call);
  }
  /// Throws Error{kUnavailable} in a process forked after this was opened: CUDA
  /// does not work there, and some calls would hang.
  void check_process() const {
    if (forks_.load(std::memory_order_relaxed) != generation_) {
      refuse_process();
    }
  }
  /// "invalid argument (CUDA_ERROR_INVALID_VALUE, 1)".
  std::string describe(CUresult result) const;
  /// CUDA version the driver supports: 13000 for 13.0.
  int version() const { return version_; }
  /// Where the driver's libraries are.
  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit Driver(const DynamicLibrary& library);
  [[noreturn]] void fail(CUresult result, const char* call) const;
  [[noreturn]] static void refuse_process();

  int version_ = 0;
  std::filesystem::path folder_;
  const std::atomic<std::uint64_t>& forks_;
  std::uint64_t generation_ = 0;  ///< what `forks_` was
};

/// Whether a failed load says something of the image, rather than of the GPU or
/// the process.
bool blames_image(CUresult result);

}  // namespace logpjit::runtime::cuda
