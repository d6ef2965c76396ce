// A loop over several threads, all of them joined before it returns.
#pragma once

#include <cstddef>
#include <functional>

namespace logpjit::runtime {

/// Calls `work(i)` for i in [0, count), in order of i, on at most `threads`
/// threads; the caller's is one of them, and there are as many others as the
/// system grants. No further call begins once `stop` says true. What `work`
/// throws does not keep the other calls from being made; that of the lowest i
/// is thrown in the end.
void parallel_for(
    std::size_t count, int threads,
    const std::function<void(std::size_t)>& work,
    const std::function<bool()>& stop = [] { return false; });

}  // namespace logpjit::runtime
