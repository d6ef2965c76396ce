// A loop over several threads, all of them joined before it returns.
#pragma once

#include <cstddef>
#include <functional>

namespace logpjit::tuning {

/// Calls `work(i)` for i in [0, count), in order of i, on at most `threads`
/// threads; the caller's is one of them. `work` must not throw. No further
/// call begins once `stop` says true.
void parallel_for(std::size_t count, int threads,
                  const std::function<void(std::size_t)>& work,
                  const std::function<bool()>& stop);

}  // namespace logpjit::tuning
