// Opens libcuda and fills the function table.
#include "runtime/cuda/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "cache/fork_safe_mutex.hpp"
#include "logpjit/error.hpp"
#include "runtime/compile_gate.hpp"

namespace logpjit::runtime::cuda {
namespace {

/// Drivers by file name asked for. The driver library itself is one per process
/// and must never be closed, so neither is its table.
struct Opened {
  std::mutex mutex;  // taken with a CompileGate held
  std::map<std::string, std::unique_ptr<const Driver>> drivers;
};
Opened& opened() {
  static auto* const instance = new Opened;
  return *instance;
}

}  // namespace

Driver::Driver(const DynamicLibrary& library)
    : folder_(library.path().parent_path()), forks_(cache::fork_counter()) {
#define LOGPJIT_CUDA(name, symbol, arguments)                             \
  name = reinterpret_cast<CUresult(*) arguments>(library.find(#symbol));  \
  if (name == nullptr) {                                                  \
    throw Error(ErrorCode::kUnavailable,                                  \
                fmt::format("the CUDA driver {} lacks " #symbol           \
                            "; logpjit needs the driver of CUDA 12.0 or " \
                            "newer",                                      \
                            library.path().string()));                    \
  }
#include "runtime/cuda/driver_functions.inc"
#undef LOGPJIT_CUDA
  if (const CUresult result = init(0); result != kSuccess) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the CUDA driver found no usable GPU: {}",
                            describe(result)));
  }
  check(driver_get_version(&version_), "cuDriverGetVersion");
  generation_ = forks_;
}

const Driver& Driver::open(const std::string& explicit_file,
                           const std::vector<std::filesystem::path>& folders) {
  const CompileGate gate;
  Opened& all = opened();
  const std::lock_guard lock(all.mutex);
  std::unique_ptr<const Driver>& driver = all.drivers[explicit_file];
  if (!driver) {
    driver.reset(new Driver(DynamicLibrary::open(
        {.what = "the CUDA driver",
         .explicit_file = explicit_file,
         .option = "Options::driver_library or LOGPJIT_DRIVER",
         .names = {"libcuda.so.1", "libcuda.so"},
         .folders = folders})));
  }
  driver->check_process();
  return *driver;
}

void Driver::refuse_process() {
  throw Error(ErrorCode::kUnavailable,
              "this process was forked after CUDA was initialised in its "
              "parent, and CUDA does not work in such a child: start it with "
              "spawn or exec, or fork before the first use of a GPU");
}

std::string Driver::describe(CUresult result) const {
  const char* error_name = nullptr;
  const char* text = nullptr;
  get_error_name(result, &error_name);
  get_error_string(result, &text);
  return fmt::format("{} ({}, {})", text != nullptr ? text : "unknown error",
                     error_name != nullptr ? error_name : "?", result);
}

void Driver::fail(CUresult result, const char* call) const {
  const std::string message =
      fmt::format("{} failed: {}", call, describe(result));
  if (result == kContextIsDestroyed) {
    throw ContextLost(ErrorCode::kDriver, message);
  }
  throw Error(ErrorCode::kDriver, message);
}

bool blames_image(CUresult result) {
  constexpr std::array kBlame{kInvalidValue,
                              kInvalidImage,
                              kNoBinaryForGpu,
                              kInvalidPtx,
                              kJitCompilerNotFound,
                              kUnsupportedPtxVersion,
                              kJitCompilationDisabled,
                              kInvalidSource,
                              kFileNotFound,
                              kSymbolNotFound,
                              kSharedObjectInitFailed,
                              kNotFound,
                              kUnknown};
  return std::ranges::find(kBlame, result) != kBlame.end();
}

}  // namespace logpjit::runtime::cuda
