// NCCL as a table of functions, opened at run time.
#pragma once

#include <cstddef>
#include <string>

#include "logpjit/options.hpp"
#include "runtime/dynamic_library.hpp"

struct CUstream_st;
struct ncclComm;

namespace logpjit::runtime {

using NcclComm = ::ncclComm;
struct NcclUniqueId {
  char internal[128];
};

// Values of NCCL's stable ABI.
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kNcclUint8 = 1;
inline constexpr int kNcclUint32 = 3;
inline constexpr int kNcclFloat32 = 7;
inline constexpr int kNcclSum = 0;
inline constexpr int kNcclMax = 2;

/// Immutable; the library is never closed.
class Nccl {
 public:
  /// Error{kUnavailable} with the sentence why not.
  explicit Nccl(const Options& options);

#define LOGPJIT_NCCL(name, symbol, result, arguments) \
  result(*name) arguments = nullptr;
#include "runtime/collective/nccl_functions.inc"
#undef LOGPJIT_NCCL

  /// Throws Error{kDriver} unless `result` is success; `call` names what was
  /// called ("ncclAllGather").
  void check(int result, const char* call) const;
  std::string version() const;

 private:
  DynamicLibrary library_;
};

}  // namespace logpjit::runtime
