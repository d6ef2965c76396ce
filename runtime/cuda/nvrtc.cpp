// Opens NVRTC and fills the function table.
#include "runtime/cuda/nvrtc.hpp"

#include <fmt/format.h>

#include "logpjit/error.hpp"

namespace logpjit::runtime::cuda {
namespace {

[[noreturn]] void refuse(const DynamicLibrary& library,
                         const std::string& why) {
  throw Error(ErrorCode::kUnavailable,
              fmt::format("{} is no usable NVRTC: {}; logpjit needs NVRTC 12 "
                          "or newer, named with Options::nvrtc_library or "
                          "LOGPJIT_NVRTC",
                          library.path().string(), why));
}

}  // namespace

LibrarySearch nvrtc_search(const std::string& explicit_file,
                           const std::vector<std::filesystem::path>& folders) {
  return {.what = "NVRTC",
          .explicit_file = explicit_file,
          .option = "Options::nvrtc_library or LOGPJIT_NVRTC",
          .names = {"libnvrtc.so.13", "libnvrtc.so.12"},
          .folders = folders,
          .known_folders = true};
}

Nvrtc::Nvrtc(const LibrarySearch& search)
    : library_(DynamicLibrary::open(search)) {
#define LOGPJIT_NVRTC(name, symbol, result, arguments)                  \
  name = reinterpret_cast<result(*) arguments>(library_.find(#symbol)); \
  if (name == nullptr) refuse(library_, "it lacks " #symbol);
#include "runtime/cuda/nvrtc_functions.inc"
#undef LOGPJIT_NVRTC
  version(&major_, &minor_);
  if (major_ < 12)
    refuse(library_, fmt::format("its version is {}.{}", major_, minor_));
  int count = 0;
  get_num_supported_archs(&count);
  archs_.resize(static_cast<std::size_t>(count));
  get_supported_archs(archs_.data());
}

}  // namespace logpjit::runtime::cuda
