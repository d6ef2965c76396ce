// A loop over several threads.
#include "runtime/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace logpjit::runtime {
namespace {

TEST(ParallelFor, CallsEachOnceWhateverTheThreads) {
  for (const int threads : {-1, 1, 3, 64}) {
    std::vector<std::atomic<int>> calls(20);
    parallel_for(calls.size(), threads, [&](std::size_t i) { ++calls[i]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1) << threads;
  }
  parallel_for(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, ThrowsTheFirstFailureAfterAllCalls) {
  for (const int threads : {1, 4}) {
    std::atomic<int> calls = 0;
    try {
      parallel_for(8, threads, [&](std::size_t i) {
        ++calls;
        if (i % 3 == 2) throw std::runtime_error(std::to_string(i));
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "2");
    }
    EXPECT_EQ(calls, 8);
  }
}

TEST(ParallelFor, BeginsNothingOnceItIsToStop) {
  int calls = 0;
  parallel_for(
      8, 1, [&](std::size_t) { ++calls; }, [&] { return calls == 3; });
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace logpjit::runtime
