// Contexts by Boost.Context's assembly, announced to sanitizers.
#include "runtime/cpu/context.hpp"

namespace logpjit::runtime {

namespace fcontext = boost::context::detail;

void Context::start(fcontext::transfer_t transfer) {
  const Context* self = static_cast<const Handover*>(transfer.data)->to;
  arrive(transfer);
  self->main_(self->argument_);
}

Context::Context() {
#if defined(LOGPJIT_THREAD_SANITIZER)
  sanitizer_state_ = __tsan_get_current_fiber();
#endif
}

Context::Context(Stack stack, void (*main)(void*), void* argument)
    : suspended_(
          fcontext::make_fcontext(stack.top, stack.size, &Context::start)),
      main_(main),
      argument_(argument),
      stack_low_(stack.top - stack.size),
      stack_bytes_(stack.size) {
#if defined(LOGPJIT_THREAD_SANITIZER)
  sanitizer_state_ = __tsan_create_fiber(0);
#endif
}

Context::~Context() {
#if defined(LOGPJIT_THREAD_SANITIZER)
  if (main_ != nullptr) __tsan_destroy_fiber(sanitizer_state_);
#endif
}

}  // namespace logpjit::runtime
