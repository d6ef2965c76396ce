// Warnings of the cache: one of each kind, however often the trouble occurs.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "cache/fork_safe_mutex.hpp"

namespace logpjit::cache {

/// Receives one line per warning ("cache: cannot write ...: ...").
using WarningSink = std::function<void(const std::string&)>;

/// Safe to share between threads. The sink is called without a lock held, and
/// what it throws is swallowed: a warning fails nobody.
class Warnings {
 public:
  explicit Warnings(WarningSink sink) : sink_(std::move(sink)) {}

  /// Passes on "cache: <message>" unless `kind` has been warned of before.
  void once(const std::string& kind, const std::string& message);

 private:
  WarningSink sink_;
  ForkSafeMutex mutex_;
  std::set<std::string> seen_;
};

}  // namespace logpjit::cache
