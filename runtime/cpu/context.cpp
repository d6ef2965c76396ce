// Contexts by Boost.Context's assembly, announced to sanitizers.
#include "runtime/cpu/context.hpp"

#include <boost/context/detail/fcontext.hpp>
#include <utility>

#include "runtime/cpu/sanitizer.hpp"

#if defined(LOGPJIT_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#elif defined(LOGPJIT_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace logpjit::runtime {

namespace fcontext = boost::context::detail;

/// What one side of a switch tells the other.
struct Context::Entry {
  Context* from;
  Context* to;

  static void arrive(fcontext::transfer_t transfer) {
    const auto* entry = static_cast<const Entry*>(transfer.data);
    entry->from->suspended_ = transfer.fctx;
#if defined(LOGPJIT_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(entry->to->sanitizer_state_,
                                    &entry->from->stack_low_,
                                    &entry->from->stack_bytes_);
#endif
  }

  static void start(fcontext::transfer_t transfer) {
    const Context* self = static_cast<const Entry*>(transfer.data)->to;
    arrive(transfer);
    self->main_(self->argument_);
  }
};

Context::Context() {
#if defined(LOGPJIT_THREAD_SANITIZER)
  sanitizer_state_ = __tsan_get_current_fiber();
#endif
}

Context::Context(Stack stack, void (*main)(void*), void* argument)
    : suspended_(fcontext::make_fcontext(stack.top, stack.size, Entry::start)),
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

void Context::switch_to(Context& to) {
  Entry entry{this, &to};
#if defined(LOGPJIT_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&sanitizer_state_, to.stack_low_,
                                 to.stack_bytes_);
#elif defined(LOGPJIT_THREAD_SANITIZER)
  __tsan_switch_to_fiber(to.sanitizer_state_, 0);
#endif
  Entry::arrive(
      fcontext::jump_fcontext(std::exchange(to.suspended_, nullptr), &entry));
}

}  // namespace logpjit::runtime
