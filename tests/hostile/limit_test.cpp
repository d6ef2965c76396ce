// Thousands of entries against small limits, with readers and several writers.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cache/eviction.hpp"
#include "cache/image_cache.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/cache/worker_process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::memory_directory;
using logpjit::testing::names_in;
using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::WarningLog;
using logpjit::testing::WorkerProcess;

namespace fs = std::filesystem;

class LimitTest : public ::testing::Test {
 protected:
  fs::path directory() { return home_.path() / "cache"; }
  std::uint64_t bytes() {
    std::uint64_t sum = 0;
    for (const auto& each : fs::directory_iterator(directory())) {
      sum += each.file_size();
    }
    return sum;
  }
  TemporaryDirectory home_{memory_directory()};
};

TEST_F(LimitTest, FiveThousandKeysStayWithinBothLimits) {
  CacheOptions options;
  options.directory = directory();
  options.limits = {10'000'000, 1000};
  ImageCache cache(options);
  for (int i = 0; i < 5000; ++i) {
    cache.find_or_compile(sample_key(i),
                          [&] { return sample_image(i, 12'000); });
    if (i % 250 != 0) continue;
    EXPECT_LE(bytes(), 11'000'000u);
    EXPECT_LE(names_in(directory(), ".lpj").size(), 1100u);
  }
  EXPECT_GE(bytes(), 8'000'000u);
  // One inode per entry, and the lock.
  EXPECT_EQ(names_in(directory(), "").size(),
            names_in(directory(), ".lpj").size() + 1);
}

TEST_F(LimitTest, ReadersNeverFailBesideTrims) {
  constexpr int kKeys = 100;
  WarningLog log;
  std::atomic<bool> stop = false;
  std::atomic<long> wrong = 0;
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&, t] {
      for (int i = t; !stop; ++i) {
        CacheOptions options;
        options.directory = directory();
        options.warn = log.sink();
        const int number = i % kKeys;
        const Found found = ImageCache(options).find_or_compile(
            sample_key(number), [&] { return sample_image(number, 2000); });
        if (*found.image != sample_image(number, 2000)) ++wrong;
      }
    });
  }
  while (!fs::exists(directory())) std::this_thread::yield();
  for (int i = 0; i < 500; ++i) {
    trim(real_file_system(), directory(), {1'000'000, 20});
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(log.lines().empty());
}

TEST_F(LimitTest, SeveralProcessesTogetherStayWithinTheLimit) {
  constexpr int kProcesses = 4;
  std::vector<WorkerProcess> workers;
  for (int i = 0; i < kProcesses; ++i) {
    workers.emplace_back(std::vector<std::string>{"--limit-entries", "100"});
  }
  for (int key = 0; key < 400; key += kProcesses) {
    for (int i = 0; i < kProcesses; ++i) {
      workers[static_cast<std::size_t>(i)].ask(key + i, 0, directory());
    }
    for (auto& worker : workers) EXPECT_EQ(worker.answer(), "compiled right");
    EXPECT_LE(names_in(directory(), ".lpj").size(), 110u);
  }
}

}  // namespace
}  // namespace logpjit::cache
