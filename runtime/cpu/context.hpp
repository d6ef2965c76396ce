// A suspended line of execution: a fiber's, or an OS thread's own.
#pragma once

#include <cstddef>

#include "runtime/cpu/stack_pool.hpp"

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
  struct Entry;

  void* suspended_ = nullptr;
  void (*main_)(void*) = nullptr;
  void* argument_ = nullptr;
  // For sanitizers only, which must be told of every switch.
  const void* stack_low_ = nullptr;
  std::size_t stack_bytes_ = 0;
  void* sanitizer_state_ = nullptr;
};

}  // namespace logpjit::runtime
