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

void PrimaryContext::push() const {
  CUresult result = driver_.ctx_push_current(get());
  if (result == kContextIsDestroyed) {
    renew();
    result = driver_.ctx_push_current(get());
  }
  driver_.check(result, "cuCtxPushCurrent");
}

CurrentContext::CurrentContext(const PrimaryContext& context, Afresh)
    : driver_(context.driver()) {
  push(context);
}

void CurrentContext::push(const PrimaryContext& context) {
  context.push();
  pushed_ = true;
}

void CurrentContext::pop() const {
  CUctx_st* ignored = nullptr;
  driver_.ctx_pop_current(&ignored);
}

}  // namespace logpjit::runtime::cuda
