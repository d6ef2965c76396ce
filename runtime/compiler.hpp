// The compiling half of the seam between logpjit and the outside world.
#pragma once

#include <string>

#include "cache/image.hpp"
#include "generator/source.hpp"

namespace logpjit::runtime {

/// Implementations: NvrtcCompiler (CUDA), HostCompiler (CPU), FakeCompiler
/// (tests). Safe to share between threads.
class Compiler {
 public:
  virtual ~Compiler() = default;

  /// What decides the bits it makes beyond source, target and options:
  /// "nvrtc 13.0 build-id 1f2e..." or "g++ 12.2.0 ...". Throws
  /// Error{kUnavailable} where there is no compiler.
  virtual std::string identity() const = 0;

  /// Options in key order, space separated, without the target.
  virtual std::string options() const = 0;

  /// The dialect `compile` takes.
  virtual generator::Dialect dialect() const = 0;

  /// Throws Error{kCompileFailed} with the log (numbered source lines around
  /// each error), Error{kUnavailable}, Error{kUnsupported} for a target this
  /// compiler does not know, Error{kTimeout}.
  virtual cache::Image compile(const generator::Source& source,
                               const std::string& target) = 0;
};

}  // namespace logpjit::runtime
