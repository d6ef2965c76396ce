// NVRTC as a table of functions, opened at the first compile.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/dynamic_library.hpp"

struct _nvrtcProgram;

namespace logpjit::runtime::cuda {

using NvrtcProgram = _nvrtcProgram*;

/// Where NVRTC is looked for: 13, then 12, whose functions are all here.
LibrarySearch nvrtc_search(const std::string& explicit_file,
                           const std::vector<std::filesystem::path>& folders);

/// One opened NVRTC. Immutable; safe to share between threads.
class Nvrtc {
 public:
  /// Error{kUnavailable}: not found, not NVRTC, or older than 12.
  explicit Nvrtc(const LibrarySearch& search);

#define LOGPJIT_NVRTC(name, symbol, result, arguments) \
  result(*name) arguments = nullptr;
#include "runtime/cuda/nvrtc_functions.inc"
#undef LOGPJIT_NVRTC

  int major() const { return major_; }
  int minor() const { return minor_; }
  /// Compute capabilities it makes code for: 75, 80, ..., 121.
  const std::vector<int>& archs() const { return archs_; }
  const DynamicLibrary& library() const { return library_; }

 private:
  DynamicLibrary library_;
  int major_ = 0;
  int minor_ = 0;
  std::vector<int> archs_;
};

}  // namespace logpjit::runtime::cuda
