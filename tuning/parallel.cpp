// A loop over several threads.
#include "tuning/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace logpjit::tuning {

void parallel_for(std::size_t count, int threads,
                  const std::function<void(std::size_t)>& work,
                  const std::function<bool()>& stop) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    while (!stop()) {
      const std::size_t i = next.fetch_add(1);
      if (i >= count) return;
      work(i);
    }
  };
  const auto wanted =
      std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < wanted; ++t) others.emplace_back(run);
  run();
}

}  // namespace logpjit::tuning
