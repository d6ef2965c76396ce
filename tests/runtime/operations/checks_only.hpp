// A runtime whose calls are checked and no more.
#pragma once

#include "logpjit/options.hpp"

namespace logpjit {

/// No kernel is in any cache and none is compiled: a call that gets past its
/// checks ends with kNotCached.
inline Options checks_only() {
  Options options;
  options.device = "cpu";
  options.never_compile = true;
  options.fallback = FallbackUse::kNever;
  return options;
}

}  // namespace logpjit
