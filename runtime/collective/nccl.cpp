// Opens NCCL and fills the function table.
#include "runtime/collective/nccl.hpp"

#include <fmt/format.h>

#include "logpjit/error.hpp"

namespace logpjit::runtime {
namespace {

constexpr const char* kOption = "Options::nccl_library or LOGPJIT_NCCL";

LibrarySearch nccl_search(const Options& options) {
  return {.what = "NCCL",
          .explicit_file = options.nccl_library,
          .option = kOption,
          .names = {"libnccl.so.2"},
          .folders = options.library_folders,
          .known_folders = true};
}

}  // namespace

Nccl::Nccl(const Options& options)
    : library_(DynamicLibrary::open(nccl_search(options))) {
#define LOGPJIT_NCCL(name, symbol, result, arguments)                          \
  name = reinterpret_cast<result(*) arguments>(library_.find(#symbol));        \
  if (name == nullptr) {                                                       \
    throw Error(ErrorCode::kUnavailable,                                       \
                fmt::format("{} is no usable NCCL: it lacks {}; name another " \
                            "with {}",                                         \
                            library_.path().string(), #symbol, kOption));      \
  }
#include "runtime/collective/nccl_functions.inc"
#undef LOGPJIT_NCCL
}

void Nccl::check(int result, const char* call) const {
  if (result == kNcclSuccess || result == kNcclInProgress) return;
  throw Error(ErrorCode::kDriver,
              fmt::format("{} failed: {} ({}); NCCL_DEBUG=WARN in the "
                          "environment says more",
                          call, get_error_string(result), result));
}

std::string Nccl::version() const {
  int code = 0;
  check(get_version(&code), "ncclGetVersion");
  return fmt::format("{}.{}.{}", code / 10000, code % 10000 / 100, code % 100);
}

}  // namespace logpjit::runtime
