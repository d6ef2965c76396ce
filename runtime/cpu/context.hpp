// A suspended line of execution: a fiber's, or an OS thread's own.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <utility>

#include "runtime/cpu/sanitizer.hpp"
#include "runtime/cpu/stack_pool.hpp"

#if defined(LOGPJIT_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#elif defined(LOGPJIT_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace logpjit::runtime {

/// Switching costs a few nanoseconds and allocates nothing. Every context of a
/// set that switches among itself belongs to one OS thread for good.
/// Destroying a suspended fiber forgets its frames without unwinding them.
class Context {
 public:
  /// The calling thread's own, to switch away from.
  Context();
  /// A fiber that calls `main(argument)`, which must never return, when first
  /// switched to.
  Context(Stack stack, void (*main)(void*), void* argument);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Called on the running context: suspends it and resumes `to`; returns when
  /// something switches back.
  void switch_to(Context& to);

 private:
  /// What one side of a switch tells the other.
  struct Handover {
    Context* from;
    Context* to;
  };

  static void start(boost::context::detail::transfer_t transfer);
  static void arrive(boost::context::detail::transfer_t transfer);

  void* suspended_ = nullptr;
  void (*main_)(void*) = nullptr;
  void* argument_ = nullptr;
  // For sanitizers only, which must be told of every switch.
  [[maybe_unused]] const void* stack_low_ = nullptr;
  [[maybe_unused]] std::size_t stack_bytes_ = 0;
  [[maybe_unused]] void* sanitizer_state_ = nullptr;
};

// Inline down to the jump: after it the processor mispredicts every return up
// to the kernel, so there must be few.

inline void Context::arrive(boost::context::detail::transfer_t transfer) {
  const auto* handover = static_cast<const Handover*>(transfer.data);
  handover->from->suspended_ = transfer.fctx;
#if defined(LOGPJIT_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(handover->to->sanitizer_state_,
                                  &handover->from->stack_low_,
                                  &handover->from->stack_bytes_);
#endif
}

inline void Context::switch_to(Context& to) {
  Handover handover{this, &to};
#if defined(LOGPJIT_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&sanitizer_state_, to.stack_low_,
                                 to.stack_bytes_);
#elif defined(LOGPJIT_THREAD_SANITIZER)
  __tsan_switch_to_fiber(to.sanitizer_state_, 0);
#endif
  arrive(boost::context::detail::jump_fcontext(
      std::exchange(to.suspended_, nullptr), &handover));
}

}  // namespace logpjit::runtime
