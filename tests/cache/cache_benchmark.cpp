// What the cache's steps cost: key, publish, warm read, lock, warm start. The
// line that ends in _min is what the machine can do, the median what it does.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "cache/atomic_file.hpp"
#include "cache/entry.hpp"
#include "cache/entry_file.hpp"
#include "cache/entry_name.hpp"
#include "cache/file_lock.hpp"
#include "cache/image_cache.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::memory_directory;
using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;

/// Several short runs: a neighbour disturbs some of them.
void in_short_runs(benchmark::internal::Benchmark* each) {
  constexpr int kRuns = 15;
  each->Repetitions(kRuns)->MinTime(0.02)->ReportAggregatesOnly();
  each->ComputeStatistics("min", [](const std::vector<double>& times) {
    return *std::ranges::min_element(times);
  });
}

Key full_key() {
  Key key;
  key.add("arch", "sm_90a");
  key.add("compiler", "nvrtc 13.0 build-id 0123456789abcdef0123456789abcdef");
  key.add("config", "block=512,unroll=4");
  key.add("options", "--no-cache --std=c++17 --device-as-default-execution");
  key.add("source", std::string(32, 'a'));
  key.add("spec", "family=1 op=logp logits=bf16 ids=int64 vocab=151936");
  return key;
}

void build_key(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(full_key().hash().data());
}
BENCHMARK(build_key)->Apply(in_short_runs);

void publish(benchmark::State& state, const std::filesystem::path& parent) {
  const TemporaryDirectory home(parent);
  const auto entry = encode(sample_key(1).text(), sample_image(1));
  for (auto _ : state) {
    publish_file(real_file_system(), home.path(), "entry", entry);
  }
}
BENCHMARK_CAPTURE(publish, disk, std::filesystem::temp_directory_path())
    ->UseRealTime()
    ->Apply(in_short_runs);
BENCHMARK_CAPTURE(publish, memory, memory_directory())
    ->UseRealTime()
    ->Apply(in_short_runs);

void read_and_verify(benchmark::State& state) {
  const TemporaryDirectory home;
  const auto entry = encode(sample_key(1).text(), sample_image(1));
  publish_file(real_file_system(), home.path(), "entry", entry);
  const std::string path = home.path() / "entry";
  for (auto _ : state) {
    benchmark::DoNotOptimize(read_entry_file(real_file_system(), path).state);
  }
}
BENCHMARK(read_and_verify)->Apply(in_short_runs);

void lock_pair(benchmark::State& state) {
  const TemporaryDirectory home;
  LockFile lock(real_file_system(), home.path() / "lock");
  const off_t offset = lock_offset(full_key().hash());
  for (auto _ : state) {
    benchmark::DoNotOptimize(lock.acquire(offset, {}).outcome);
  }
}
BENCHMARK(lock_pair)->Apply(in_short_runs);

void warm_start(benchmark::State& state) {
  const TemporaryDirectory home;
  CacheOptions options;
  options.directory = home.path() / "cache";
  ImageCache(options).find_or_compile(full_key(),
                                      [] { return sample_image(1); });
  for (auto _ : state) {
    benchmark::DoNotOptimize(ImageCache(options).find(full_key())->origin);
  }
}
BENCHMARK(warm_start)->Apply(in_short_runs);

void hit_in_memory(benchmark::State& state) {
  ImageCache cache({});
  const Key key = full_key();
  const auto compile = [] { return sample_image(1); };
  for (auto _ : state) {
    benchmark::DoNotOptimize(cache.find_or_compile(key, compile).origin);
  }
}
BENCHMARK(hit_in_memory)->Apply(in_short_runs);

}  // namespace
}  // namespace logpjit::cache
