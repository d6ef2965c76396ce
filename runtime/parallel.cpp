// A loop over several threads.
#include "runtime/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace logpjit::runtime {

void parallel_for(std::size_t count, int threads,
                  const std::function<void(std::size_t)>& work,
                  const std::function<bool()>& stop) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> failures(count);
  const auto run = [&] {
    while (!stop()) {
      const std::size_t i = next.fetch_add(1);
      if (i >= count) return;
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  const auto wanted =
      std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<std::jthread> others;
  try {
    while (others.size() + 1 < wanted) others.emplace_back(run);
  } catch (const std::system_error&) {
    // As many as there may be.
  }
  run();
  others.clear();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace logpjit::runtime
