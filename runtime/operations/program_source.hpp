// Where a call's kernel comes from.
#pragma once

#include <string_view>

#include "logpjit/call_options.hpp"
#include "logpjit/runtime.hpp"
#include "runtime/engine.hpp"

namespace logpjit::runtime {

/// The engine, which finds or prepares the kernel of a specification, or the
/// caller, who holds one.
class ProgramSource {
 public:
  explicit ProgramSource(Engine& engine) : engine_(&engine) {}
  explicit ProgramSource(const Kernel& kernel) : held_(&kernel.program()) {}

  Device& device() const {
    return held_ != nullptr ? held_->device() : engine_->device();
  }
  /// Null when the kernel is held.
  Engine* engine() const { return engine_; }

  /// The kernel held, or null. Error{kInvalidArgument} when it is of another
  /// specification, or the options ask for more than a launch.
  const Program* held(std::string_view op, const KernelSpec& spec,
                      const CallOptions& options) const {
    if (held_ != nullptr) check_held(op, spec, options);
    return held_;
  }

 private:
  void check_held(std::string_view op, const KernelSpec& spec,
                  const CallOptions& options) const;

  Engine* engine_ = nullptr;
  const Program* held_ = nullptr;
};

}  // namespace logpjit::runtime
