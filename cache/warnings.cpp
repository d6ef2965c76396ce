// Which kinds of warning have been given.
#include "cache/warnings.hpp"

namespace logpjit::cache {

void Warnings::once(const std::string& kind, const std::string& message) {
  if (!sink_) return;
  {
    const std::lock_guard lock(mutex_);
    if (!seen_.insert(kind).second) return;
  }
  try {
    sink_("cache: " + message);
  } catch (...) {  // the sink's own trouble
  }
}

}  // namespace logpjit::cache
