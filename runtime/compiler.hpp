// The compiling half of the seam between logpjit and the outside world.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
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

  using Clock = std::chrono::steady_clock;
  /// A compile that is still at work then may end in Error{kTimeout}: for who
  /// has only so long. NVRTC cannot be ended.
  void give_up_at(Clock::time_point time) { give_up_at_ = time; }

 protected:
  /// What of `most` seconds is left until then.
  double seconds_left(double most) const {
    const std::chrono::duration<double> left =
        give_up_at_.load() - Clock::now();
    return std::clamp(left.count(), 0.0, most);
  }

 private:
  std::atomic<Clock::time_point> give_up_at_ = Clock::time_point::max();
};

}  // namespace logpjit::runtime
