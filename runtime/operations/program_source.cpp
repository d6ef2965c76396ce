// What is wrong with a held kernel.
#include "runtime/operations/program_source.hpp"

#include <fmt/format.h>

#include "runtime/operations/check.hpp"

namespace logpjit::runtime {

void ProgramSource::check_held(std::string_view op, const KernelSpec& spec,
                               const CallOptions& options) const {
  if (spec != held_->spec()) {
    refuse(op, "kernel",
           fmt::format("was made for '{}', the call is '{}'",
                       held_->spec().text(), spec.text()));
  }
  if (options.validate || options.copy_strided || options.fallback) {
    refuse(op, "options",
           "a kernel that is held only launches; use the call that finds one");
  }
}

}  // namespace logpjit::runtime
