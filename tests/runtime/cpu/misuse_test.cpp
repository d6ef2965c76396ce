// What would hang or go wrong on a GPU ends with an error that names kernel,
// block and thread, and leaves the device usable.
#include "tests/runtime/cpu/host_kernels.hpp"

namespace logpjit::runtime::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr LaunchShape kShape{
    .grid = 1, .block = 64, .cluster = 1, .dynamic_shared_bytes = 1024};

/// The device works as ever after a failure.
void expect_usable() {
  static const auto kernel = build("sync_threads(); a.out[0] = 7;");
  float out = 0;
  launch(*kernel, {.block = 64}, {.out = &out});
  EXPECT_EQ(out, 7.0f);
}

class Misuse : public ::testing::Test {
 protected:
  void TearDown() override { expect_usable(); }
};

TEST_F(Misuse, ThreadReturnsBeforeABarrierOfOthers) {
  EXPECT_THAT(
      failure_of("if (thread_index() == 40) return; sync_threads();", kShape),
      AllOf(HasSubstr("kernel probe, block 0, thread 40"),
            HasSubstr("returned while others wait for it at sync_threads"),
            HasSubstr("threads 0-39 wait at sync_threads")));
}

TEST_F(Misuse, BarrierAfterAThreadHasReturned) {
  EXPECT_THAT(
      failure_of("if (thread_index() == 0) return; sync_threads();", kShape),
      AllOf(HasSubstr("kernel probe, block 0, thread 1:"),
            HasSubstr("sync_threads after 1 threads")));
}

TEST_F(Misuse, ThreadsWaitAtDifferentPlaces) {
  EXPECT_THAT(failure_of(R"(
    if (thread_index() < 32) sync_threads(); else sync_named(3, 64);
  )",
                         kShape),
              AllOf(HasSubstr("kernel probe"), HasSubstr("wait for ever"),
                    HasSubstr("block 0: threads 0-31 wait at sync_threads"),
                    HasSubstr("threads 32-63 wait at barrier 3 (of 64 "
                              "threads)")));
}

TEST_F(Misuse, TheLowestFailingBlockIsNamed) {
  LaunchShape shape = kShape;
  shape.grid = 64;
  const std::string message = failure_of(
      "if (block_index() >= 1 && thread_index() == 5) return; sync_threads();",
      shape);
  EXPECT_THAT(message, HasSubstr("block 1, thread 5"));
}

TEST_F(Misuse, ShuffleWithALaneGone) {
  EXPECT_THAT(failure_of(R"(
    if (thread_index() == 33) return;
    shuffle_xor(1.0f, 1);
  )",
                         kShape),
              AllOf(HasSubstr("block 0, thread 33"),
                    HasSubstr("an operation of its warp"),
                    HasSubstr("thread 32 waits at shuffle_xor")));
}

TEST_F(Misuse, BallotAfterALaneHasGone) {
  EXPECT_THAT(failure_of(R"(
    if (thread_index() == 32) return;
    if (thread_index() > 32) ballot(true);
  )",
                         kShape),
              AllOf(HasSubstr("thread 33"), HasSubstr("ballot needs all 32"),
                    HasSubstr("thread 32 has returned")));
}

TEST_F(Misuse, LanesAtDifferentOperations) {
  EXPECT_THAT(
      failure_of("if (thread_index() % 2) sync_warp(); else ballot(true);",
                 kShape),
      AllOf(HasSubstr("thread 1: sync_warp"), HasSubstr("wait at ballot")));
}

TEST_F(Misuse, ShuffleOutOfTheWarp) {
  EXPECT_THAT(
      failure_of("shuffle_xor(thread_index(), 32);", kShape),
      AllOf(HasSubstr("thread 0: shuffle_xor with 32"), HasSubstr("0 to 31")));
  EXPECT_THAT(failure_of("shuffle(1.0f, -1);", kShape),
              HasSubstr("shuffle with -1"));
}

TEST_F(Misuse, WarpOperationInAPartialWarp) {
  LaunchShape shape = kShape;
  shape.block = 48;
  EXPECT_THAT(failure_of("ballot(true);", shape),
              AllOf(HasSubstr("thread 32"), HasSubstr("last warp"),
                    HasSubstr("has 16")));
}

TEST_F(Misuse, NamedBarriersOutOfRange) {
  EXPECT_THAT(failure_of("sync_named(0, 64);", kShape),
              HasSubstr("barrier 0 does not exist"));
  EXPECT_THAT(failure_of("sync_named(16, 64);", kShape),
              HasSubstr("barrier 16 does not exist"));
  EXPECT_THAT(failure_of("sync_named(1, 48);", kShape),
              HasSubstr("multiple of 32"));
  EXPECT_THAT(failure_of("sync_named(1, 96);", kShape),
              HasSubstr("at most the block's 64"));
}

TEST_F(Misuse, NamedBarrierWithTwoCounts) {
  EXPECT_THAT(
      failure_of("sync_named(2, thread_index() < 32 ? 64 : 32);", kShape),
      AllOf(HasSubstr("thread 32"), HasSubstr("barrier 2 of 32 threads"),
            HasSubstr("arrived at it for 64")));
}

TEST_F(Misuse, MbarrierThatNeverCompletes) {
  EXPECT_THAT(failure_of(R"(
    Mbarrier* full = shared_memory<Mbarrier>(256);
    if (thread_index() == 0) mbarrier_init(full, 1);
    sync_threads();
    if (thread_index() == 0) mbarrier_expect(full, 64);
    mbarrier_wait(full, 0);
  )",
                         kShape),
              AllOf(HasSubstr("wait for ever"), HasSubstr("threads 0-63"),
                    HasSubstr("mbarrier at byte 256"), HasSubstr("parity 0")));
}

TEST_F(Misuse, MbarrierNeverInitialised) {
  const std::string body = "Mbarrier* b = shared_memory<Mbarrier>(8);";
  EXPECT_THAT(failure_of(body + "mbarrier_arrive(b);", kShape),
              AllOf(HasSubstr("thread 0: mbarrier_arrive"), HasSubstr("byte 8"),
                    HasSubstr("never initialised")));
  EXPECT_THAT(failure_of(body + "mbarrier_wait(b, 0);", kShape),
              HasSubstr("never initialised"));
}

TEST_F(Misuse, MbarrierWithTooManyArrivals) {
  EXPECT_THAT(failure_of(R"(
    Mbarrier* b = shared_memory<Mbarrier>(0);
    if (thread_index() == 0) mbarrier_init(b, 1);
    sync_threads();
    if (thread_index() == 7) mbarrier_expect(b, 16);
    if (thread_index() == 9) mbarrier_arrive(b);
  )",
                         kShape),
              AllOf(HasSubstr("thread 9"), HasSubstr("more arrivals")));
}

TEST_F(Misuse, MbarrierOutsideSharedMemory) {
  EXPECT_THAT(failure_of("Mbarrier b; mbarrier_init(&b, 1);", kShape),
              HasSubstr("mbarrier_init: the address"));
  EXPECT_THAT(
      failure_of("mbarrier_init(shared_memory<Mbarrier>(1020), 1);", kShape),
      HasSubstr("mbarrier_init: the address"));
}

TEST_F(Misuse, BulkLoadMisalignedOrTooLong) {
  const std::string begin = R"(
    Mbarrier* b = shared_memory<Mbarrier>(0);
    if (thread_index() == 0) mbarrier_init(b, 1);
    sync_threads();
    bulk_load(shared_memory<float>()";
  alignas(16) static float in[1024] = {};
  const Arguments arguments{.in = in};
  EXPECT_THAT(failure_of(begin + "16), a.in + 1, 16, b, keep_policy());",
                         kShape, arguments),
              HasSubstr("multiples of 16"));
  EXPECT_THAT(failure_of(begin + "20), a.in, 16, b, keep_policy());", kShape,
                         arguments),
              HasSubstr("multiples of 16"));
  EXPECT_THAT(failure_of(begin + "16), a.in, 24, b, keep_policy());", kShape,
                         arguments),
              HasSubstr("bulk_load of 24 bytes"));
  EXPECT_THAT(failure_of(begin + "16), a.in, 1024, b, keep_policy());", kShape,
                         arguments),
              HasSubstr("byte 16 of shared memory, which has 1024"));
}

TEST_F(Misuse, StoreToABlockThatHasEnded) {
  LaunchShape shape = kShape;
  shape.grid = shape.cluster = 2;
  EXPECT_THAT(failure_of(R"(
    if (cluster_rank() == 0) return;
    store_at(shared_memory<float>(0), 0, 1.0f);
  )",
                         shape),
              AllOf(HasSubstr("block 1, thread 0"),
                    HasSubstr("block 0 (rank 0) has ended")));
}

TEST_F(Misuse, StoreToARankThatIsNotThere) {
  EXPECT_THAT(failure_of("store_at(shared_memory<float>(0), 1, 1.0f);", kShape),
              HasSubstr("rank 1 in a cluster of 1"));
}

TEST_F(Misuse, ClusterBarrierWithAThreadGone) {
  LaunchShape shape = kShape;
  shape.grid = shape.cluster = 2;
  EXPECT_THAT(failure_of(R"(
    if (cluster_rank() == 1 && thread_index() == 3) return;
    sync_cluster();
  )",
                         shape),
              AllOf(HasSubstr("block 1, thread 3"), HasSubstr("sync_cluster"),
                    HasSubstr("block 0: threads 0-63 wait")));
}

TEST_F(Misuse, WritesBehindSharedMemory) {
  EXPECT_THAT(failure_of("shared_memory<int>(0)[256] = 1;", kShape),
              AllOf(HasSubstr("kernel probe, block 0"),
                    HasSubstr("outside its 1024 bytes")));
}

TEST_F(Misuse, ALongListOfWaitsIsCutShort) {
  const std::string message = failure_of(R"(
    if (thread_index() % 2) sync_threads(); else sync_named(1, 64);
  )",
                                         kShape);
  EXPECT_THAT(message, HasSubstr("..."));
  EXPECT_LT(message.size(), 1000u);
}

TEST_F(Misuse, FramesAreUnwound) {
  // Destructors run for threads that wait when the kernel is cancelled.
  const auto body = R"(
    struct Count { int* at; ~Count() { ++*at; } } count{a.integers};
    if (thread_index() == 63) return;
    sync_threads();
  )";
  int destroyed = 0;
  failure_of(body, kShape, {.integers = &destroyed});
  EXPECT_EQ(destroyed, 64);
}

TEST_F(Misuse, AKernelThatThrows) {
  EXPECT_THAT(
      failure_of("if (thread_index() == 3) throw 1; sync_threads();", kShape),
      HasSubstr("block 0, thread 3: threw"));
}

}  // namespace
}  // namespace logpjit::runtime::testing
