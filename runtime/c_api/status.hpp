// How a C call reports: a status, and words for the calling thread.
#pragma once

#include "logpjit/logpjit.h"

namespace logpjit::c_api {

/// The exception being handled as a status; its words are kept for the thread.
int report() noexcept;

/// Runs `work`; what it throws is reported. Allocates nothing itself.
template <typename Work>
int guarded(const Work& work) noexcept {
  try {
    work();
    return LOGPJIT_OK;
  } catch (...) {
    return report();
  }
}

/// Throws Error{kInvalidArgument} naming the argument when it is null.
void require(const void* pointer, const char* call, const char* argument);

}  // namespace logpjit::c_api
