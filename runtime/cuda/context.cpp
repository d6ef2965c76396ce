// Retaining, pushing and popping the primary context.
#include "runtime/cuda/context.hpp"

namespace logpjit::runtime::cuda {

PrimaryContext::PrimaryContext(const Driver& driver, CUdevice device)
    : driver_(driver), device_(device) {
  driver_.check(driver_.primary_ctx_retain(&context_, device_),
                "cuDevicePrimaryCtxRetain");
}

PrimaryContext::~PrimaryContext() { driver_.primary_ctx_release(device_); }

CurrentContext::CurrentContext(const PrimaryContext& context)
    : driver_(context.driver()) {
  CUctx_st* current = nullptr;
  driver_.check(driver_.ctx_get_current(&current), "cuCtxGetCurrent");
  if (current == context.get()) return;
  driver_.check(driver_.ctx_push_current(context.get()), "cuCtxPushCurrent");
  pushed_ = true;
}

CurrentContext::~CurrentContext() {
  CUctx_st* ignored = nullptr;
  if (pushed_) driver_.ctx_pop_current(&ignored);
}

}  // namespace logpjit::runtime::cuda
