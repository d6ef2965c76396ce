// Structs of the C interface as the library's own: sizes first, then members.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "logpjit/kernel_spec.hpp"
#include "logpjit/logpjit.h"
#include "logpjit/operations.hpp"
#include "runtime/c_api/status.hpp"

namespace logpjit::c_api {

/// Throws when `size` cannot be a struct's.
void check_size(const char* call, std::uint64_t size);
/// Throws when a member that the library does not know is not 0.
void check_unknown(const char* call, const void* given, std::uint64_t size,
                   std::size_t known);

/// Bytes that the caller's struct and the library's have in common.
template <typename Struct>
std::size_t common_size(const Struct* given) {
  return std::min<std::size_t>(given->size, sizeof(Struct));
}

/// The caller's struct in the library's size: members it does not know are 0.
template <typename Struct>
Struct whole(const char* call, const Struct* given) {
  require(given, call, "the struct");
  check_size(call, given->size);
  check_unknown(call, given, given->size, sizeof(Struct));
  Struct made{};
  std::memcpy(&made, given, common_size(given));
  return made;
}

/// Fills as much of the caller's struct as it has.
template <typename Struct>
void fill(const char* call, Struct made, Struct* given) {
  require(given, call, "the struct");
  check_size(call, given->size);
  made.size = given->size;
  std::memcpy(given, &made, common_size(given));
}

/// Dtype, rank and device kind are checked; the rest is the operation's.
RowForward row_forward(const char* call, const logpjit_row_forward& given);
RowBackward row_backward(const char* call, const logpjit_row_backward& given);
RowWithGrad row_with_grad(const char* call, const logpjit_row_forward& values,
                          const logpjit_row_gradient& gradient);
KlForward kl_forward(const char* call, const logpjit_kl_forward_call& given);
KlBackward kl_backward(const char* call, const logpjit_kl_backward_call& given);
KernelSpec kernel_spec(const char* call, const logpjit_spec& given);

}  // namespace logpjit::c_api
