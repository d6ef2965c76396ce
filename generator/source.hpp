// The generated source of one kernel: plain text, ready for a compiler.
#pragma once

#include <string>

#include "logpjit/kernel_spec.hpp"
#include "logpjit/launch_config.hpp"

namespace logpjit::generator {

/// Who compiles it: NVRTC, or the host's C++ compiler.
enum class Dialect { kCuda, kHost };

struct Source {
  Dialect dialect = Dialect::kCuda;
  std::string text;           ///< prelude + include closure + one instantiation
  std::string instantiation;  ///< the last line of `text`
  /// What decides `text`, in short: digests of prelude and closure, and the
  /// instantiation. Known without writing the text.
  std::string fingerprint;
  std::string kernel;  ///< "row_statistics"
  /// The instantiation with its argument type, as NVRTC's name expression;
  /// a host build exports it as `logpjit_kernel` instead.
  std::string name_expression;
  std::string spec_text;  ///< canonical, for keys and messages
  LaunchConfig config;
};

}  // namespace logpjit::generator
