// What threads do together, on kernels that use it rightly.
#include <bit>
#include <cstdint>
#include <numeric>

#include "runtime/cpu/sanitizer.hpp"
#include "tests/runtime/cpu/host_kernels.hpp"

namespace logpjit::runtime::testing {
namespace {

using ::testing::ElementsAre;

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(Collectives, BlockSumByShufflesAndSharedMemory) {
  const auto kernel = build(R"(
    float* sums = shared_memory<float>(0);
    const float* row = a.in + block_index() * a.n;
    float sum = 0;
    for (i64 i = thread_index(); i < a.n; i += kBlock) sum += row[i];
    for (int mask = 16; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if (thread_index() % 32 == 0) sums[thread_index() / 32] = sum;
    sync_threads();
    if (thread_index() == 0) a.out[block_index()] = sums[0] + sums[1];
  )");
  constexpr int kRows = 37;
  constexpr int kColumns = 1000;
  std::vector<float> in(kRows * kColumns, 1.0f);
  for (int row = 0; row < kRows; ++row) in[row * kColumns] = float(row);
  std::vector<float> out(kRows, -1);
  launch(*kernel, {.grid = kRows, .block = 64, .dynamic_shared_bytes = 8},
         {.in = in.data(), .out = out.data(), .n = kColumns});
  for (int row = 0; row < kRows; ++row) {
    EXPECT_EQ(out[row], float(kColumns - 1 + row)) << row;
  }
}

TEST(Collectives, ThreadsKnowWhoTheyAre) {
  const auto kernel = build(R"(
    const i64 at = block_index() * 64 + thread_index();
    a.integers[at] = static_cast<int>(grid_blocks() * 100 + cluster_rank());
  )");
  std::vector<int> out(6 * 64, -1);
  launch(*kernel, {.grid = 6, .block = 64, .cluster = 3},
         {.integers = out.data()});
  for (int at = 0; at < 6 * 64; ++at) {
    EXPECT_EQ(out[at], 600 + (at / 64) % 3) << at;
  }
}

TEST(Collectives, ShuffleTakesTheLaneEachAsksFor) {
  const auto kernel = build(R"(
    const int t = thread_index();
    a.out[t] = shuffle(static_cast<float>(t), 31 - t % 32);
    a.integers[t] = shuffle_xor(t, 1);
  )");
  std::vector<float> out(64);
  std::vector<int> integers(64);
  launch(*kernel, {.block = 64},
         {.out = out.data(), .integers = integers.data()});
  for (int t = 0; t < 64; ++t) {
    EXPECT_EQ(out[t], float(t / 32 * 32 + 31 - t % 32));
    EXPECT_EQ(integers[t], t ^ 1);
  }
}

TEST(Collectives, ShuffleKeepsNanBitsAndBackToBackResultsApart) {
  const auto kernel = build(R"(
    const int t = thread_index();
    float value = float_of(0x7f800001u + t);
    for (int i = 0; i < 31; ++i) value = shuffle(value, (t + 1) % 32);
    a.integers[t] = static_cast<int>(bits_of(value));
  )");
  std::vector<int> out(64);
  launch(*kernel, {.block = 64}, {.integers = out.data()});
  for (int t = 0; t < 64; ++t) {
    const int from = t / 32 * 32 + (t + 31) % 32;
    EXPECT_EQ(std::uint32_t(out[t]), 0x7f800001u + from) << t;
  }
}

TEST(Collectives, BallotAndCount) {
  const auto kernel = build(R"(
    const int t = thread_index();
    const u32 votes = ballot(t % 3 == 0);
    sync_warp();
    a.integers[t] = static_cast<int>(votes);
    a.out[t] = static_cast<float>(count_bits(votes));
  )");
  std::vector<float> out(64);
  std::vector<int> votes(64);
  launch(*kernel, {.block = 64}, {.out = out.data(), .integers = votes.data()});
  std::uint32_t expected[2] = {0, 0};
  for (int t = 0; t < 64; t += 3) expected[t / 32] |= 1u << (t % 32);
  for (int t = 0; t < 64; ++t) {
    EXPECT_EQ(std::uint32_t(votes[t]), expected[t / 32]);
    EXPECT_EQ(out[t], float(std::popcount(expected[t / 32])));
  }
}

TEST(Collectives, NamedBarriersServeWarpsApart) {
  // Two pairs of warps each pass a token back and forth on their own barrier.
  const auto kernel = build(R"(
    int* tokens = shared_memory<int>(0);
    const int pair = thread_index() / 64;
    const int lane = thread_index() % 64;
    for (int round = 0; round < 10 * (pair + 1); ++round) {
      if (lane == (round % 2) * 32) {
        tokens[pair] = round == 0 ? 1 : tokens[pair] + 1;
      }
      sync_named(1 + pair, 64);
    }
    if (lane == 0) a.integers[pair] = tokens[pair];
  )");
  std::vector<int> out(2);
  launch(*kernel, {.block = 128, .dynamic_shared_bytes = 8},
         {.integers = out.data()});
  EXPECT_THAT(out, ElementsAre(10, 20));
}

TEST(Collectives, ClusterBlocksReachEachOthersMemory) {
  const auto kernel = build(R"(
    float* inbox = shared_memory<float>(0);
    const int rank = cluster_rank();
    if (thread_index() < 4) {
      store_at(inbox + rank, thread_index(), 10.0f * rank + thread_index());
    }
    sync_cluster();
    if (thread_index() < 4) {
      a.out[block_index() * 4 + thread_index()] = inbox[thread_index()];
    }
  )");
  std::vector<float> out(8 * 4, -1);
  launch(*kernel,
         {.grid = 8, .block = 64, .cluster = 4, .dynamic_shared_bytes = 16},
         {.out = out.data()});
  for (int at = 0; at < 32; ++at) {
    EXPECT_EQ(out[at], 10.0f * float(at % 4) + float(at / 4 % 4)) << at;
  }
}

TEST(Collectives, SharedMemoryIsAlignedAndPoisoned) {
  const auto kernel = build(R"(
    const u32* words = shared_memory<u32>(0);
    const u64 address = reinterpret_cast<u64>(words);
    if (thread_index() == 0) {
      a.integers[block_index() * 2] = static_cast<int>(words[block_index()]);
      a.integers[block_index() * 2 + 1] = static_cast<int>(address % 128);
    }
    sync_threads();
    shared_memory<u32>(0)[thread_index()] = 0;
  )");
  std::vector<int> out(20);
  launch(*kernel, {.grid = 10, .block = 64, .dynamic_shared_bytes = 256},
         {.integers = out.data()});
  for (int block = 0; block < 10; ++block) {
    EXPECT_EQ(std::uint32_t(out[block * 2]), 0xa5a5a5a5u);
    EXPECT_EQ(out[block * 2 + 1], 0);
  }
}

TEST(Collectives, CountersAddUpOverBlocksAndThreads) {
  const auto kernel = build("add_relaxed((u64*)a.integers, 3);");
  alignas(8) std::uint64_t count = 0;
  launch(*kernel, {.grid = 200, .block = 64},
         {.integers = reinterpret_cast<int*>(&count)});
  EXPECT_EQ(count, 200u * 64 * 3);
}

constexpr const char* kPipeline = R"(
  // Warp 2 produces stages of 64 floats; warps 0 and 1 consume them.
  constexpr int kStages = 3;
  constexpr u32 kBytes = 64 * sizeof(float);
  float* stages = shared_memory<float>(0);
  Mbarrier* full = shared_memory<Mbarrier>(kStages * kBytes);
  Mbarrier* empty = full + kStages;
  if (thread_index() == 0) {
    for (int s = 0; s < kStages; ++s) {
      mbarrier_init(full + s, 1);
      mbarrier_init(empty + s, 64);
    }
    mbarrier_publish();
  }
  sync_threads();
  const int tiles = static_cast<int>(a.n / 64);
  if (thread_index() >= 64) {
    for (int tile = 0; tile < tiles && thread_index() == 64; ++tile) {
      const int s = tile % kStages;
      mbarrier_wait(empty + s, (tile / kStages + 1) % 2);
      mbarrier_expect(full + s, kBytes);
      bulk_load(stages + s * 64, a.in + tile * 64, kBytes / 2, full + s,
                keep_policy());
      bulk_load(stages + s * 64 + 32, a.in + tile * 64 + 32, kBytes / 2,
                full + s, keep_policy());
    }
  } else {
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      const int s = tile % kStages;
      mbarrier_wait(full + s, tile / kStages % 2);
      sum += stages[s * 64 + thread_index()];
      mbarrier_arrive(empty + s);
    }
    a.out[block_index() * 64 + thread_index()] = sum;
  }
)";

TEST(Collectives, ProducerWarpFeedsAPipeline) {
  const auto kernel = build(kPipeline);
  constexpr int kTiles = 20;
  alignas(16) static float in[kTiles * 64];
  const std::vector<float> values = ramp(kTiles * 64);
  std::copy(values.begin(), values.end(), in);
  std::vector<float> out(4 * 64);
  launch(*kernel, {.grid = 4, .block = 96, .dynamic_shared_bytes = 1024},
         {.in = in, .out = out.data(), .n = kTiles * 64});
  for (int at = 0; at < 4 * 64; ++at) {
    float expected = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      expected += float(tile * 64 + at % 64 + 1);
    }
    EXPECT_EQ(out[at], expected) << at;
  }
}

TEST(Collectives, OddBlockSizesRunWithoutWarpOperations) {
  const auto kernel = build(R"(
    shared_memory<int>(0)[thread_index()] = thread_index();
    sync_threads();
    a.integers[thread_index()] = shared_memory<int>(0)[32 - thread_index()];
  )");
  std::vector<int> out(33);
  launch(*kernel, {.block = 33, .dynamic_shared_bytes = 33 * 4},
         {.integers = out.data()});
  for (int t = 0; t < 33; ++t) EXPECT_EQ(out[t], 32 - t);
}

#if defined(LOGPJIT_THREAD_SANITIZER)
constexpr int kLargestCluster = 4;  // it counts fibers as threads, 8128 at most
#else
constexpr int kLargestCluster = 16;
#endif

TEST(Collectives, LargestBlockAndCluster) {
  const auto kernel = build(R"(
    if (thread_index() == 0) *shared_memory<float>(0) = 0;
    sync_cluster();
    store_at(shared_memory<float>(4) + cluster_rank(), 0, 1.0f);
    sync_cluster();
    if (cluster_rank() != 0 || thread_index() != 0) return;
    for (int rank = 0; rank < a.n; ++rank) {
      a.out[0] += shared_memory<float>(4)[rank];
    }
  )");
  std::vector<float> out(1);
  launch(*kernel,
         {.grid = kLargestCluster,
          .block = 1024,
          .cluster = kLargestCluster,
          .dynamic_shared_bytes = 68},
         {.out = out.data(), .n = kLargestCluster});
  EXPECT_EQ(out[0], float(kLargestCluster));
}

}  // namespace
}  // namespace logpjit::runtime::testing
