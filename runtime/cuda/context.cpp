// Retaining, pushing and popping the primary context.
#include "runtime/cuda/context.hpp"

namespace logpjit::runtime::cuda {

PrimaryContext::PrimaryContext(const Driver& driver, CUdevice device)
    : driver_(driver), device_(device) {
  renew();
}

PrimaryContext::~PrimaryContext() { driver_.primary_ctx_release(device_); }

void PrimaryContext::renew() const {
  CUctx_st* context = nullptr;
  driver_.check(driver_.primary_ctx_retain(&context, device_),
                "cuDevicePrimaryCtxRetain");
  context_ = context;
}

CurrentContext::CurrentContext(const PrimaryContext& context)
    : driver_(context.driver()) {
  driver_.check_process();
  CUctx_st* current = nullptr;
  driver_.check(driver_.ctx_get_current(&current), "cuCtxGetCurrent");
  if (current != context.get()) push(context);
}

CurrentContext::CurrentContext(const PrimaryContext& context, Afresh)
    : driver_(context.driver()) {
  push(context);
}

void CurrentContext::push(const PrimaryContext& context) {
  CUresult result = driver_.ctx_push_current(context.get());
  if (result == kContextIsDestroyed) {
    context.renew();
    result = driver_.ctx_push_current(context.get());
  }
  driver_.check(result, "cuCtxPushCurrent");
  pushed_ = true;
}

CurrentContext::~CurrentContext() {
  CUctx_st* ignored = nullptr;
  if (pushed_) driver_.ctx_pop_current(&ignored);
}

}  // namespace logpjit::runtime::cuda
