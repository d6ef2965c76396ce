// A rank that never comes: a typed error on the others, wherever they wait, and
// a group that is given up.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <thread>

#include "logpjit/collective.hpp"
#include "logpjit/error.hpp"
#include "logpjit/vocab_parallel.hpp"
#include "runtime/engine.hpp"
#include "tests/support/device/fake_compiler.hpp"
#include "tests/support/device/null_device.hpp"

namespace logpjit {
namespace {

using logpjit::testing::FakeCompiler;
using logpjit::testing::NullDevice;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kTimeout = 0.3;

/// A GPU whose streams may get stuck; `device` is the runtime's.
struct Stuck {
  Stuck() {
    auto made = std::make_unique<NullDevice>();
    device = made.get();
    Options options;
    options.nccl_library = LOGPJIT_FAKE_NCCL;
    runtime = std::make_unique<Runtime>(std::make_unique<runtime::Engine>(
        options, std::move(made), std::make_unique<FakeCompiler>()));
  }
  NullDevice* device = nullptr;
  std::unique_ptr<Runtime> runtime;
};

int aborts() {
  void* library = dlopen(LOGPJIT_FAKE_NCCL, RTLD_NOW);
  return reinterpret_cast<int (*)()>(dlsym(library, "fake_nccl_aborts"))();
}

/// "" or an error's code and message.
template <typename Work>
std::string failure_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return fmt::format("{}: {}", name(error.code()), error.message());
  }
  return "";
}

/// What each rank's `work(group)` threw, over the pretended NCCL.
template <typename Work>
std::vector<std::string> over_nccl(Runtime& runtime, int ranks,
                                   const Work& work) {
  const NcclId id = make_nccl_id(runtime.engine().options());
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto group = join_nccl(runtime, id, rank, ranks, kTimeout);
      said[static_cast<std::size_t>(rank)] = failure_of([&] { work(*group); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return said;
}

/// One row of logits per rank, in memory of the host.
struct Tensors {
  explicit Tensors(DeviceId device) {
    call.logits = TensorView::contiguous(logits, DType::kBf16, {1, 32}, device);
    call.ids = TensorView::contiguous(&id, DType::kInt64, {1}, device);
    call.logp = TensorView::contiguous(&logp, DType::kFp32, {1}, device);
  }
  alignas(16) std::uint16_t logits[32] = {};
  std::int64_t id = 0;
  float logp = 0;
  RowForward call;
  alignas(16) std::byte scratch[1024];
};

TEST(TimeOut, InARunningCollectiveStopsTheGroupOnEveryRank) {
  for (const bool compare : {true, false}) {
    Stuck gpu;
    const int before = aborts();
    const auto said = over_nccl(*gpu.runtime, 3, [&](Collective& collective) {
      VocabParallel group(*gpu.runtime, collective, VocabShards::even(96, 3),
                          {.compare_calls = compare, .timeout_s = kTimeout});
      Tensors tensors(gpu.runtime->device().id);
      const auto forward = [&] {
        group.forward(tensors.call, {tensors.scratch, sizeof tensors.scratch});
        group.check();
      };
      gpu.device->stuck = true;
      const std::string first = failure_of(forward);
      EXPECT_THAT(failure_of(forward), HasSubstr("was given up: rank"));
      throw Error(ErrorCode::kInternal, first);
    });
    EXPECT_THAT(said, Each(AllOf(HasSubstr("timeout: "),
                                 HasSubstr("of 3 waited 0.3 s for"))))
        << compare;
    EXPECT_EQ(aborts() - before, 3) << "each rank stops its own";
  }
}

TEST(TimeOut, InsideALibrarysCallIsTyped) {
  Stuck gpu;
  const int before = aborts();
  const auto said = over_nccl(*gpu.runtime, 2, [&](Collective& group) {
    if (group.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::duration<double>(4 * kTimeout));
      return;
    }
    std::uint32_t words[2] = {};
    const auto gather = [&] {
      group.all_gather(words, words, sizeof words[0], nullptr);
    };
    const std::string first = failure_of(gather);
    EXPECT_THAT(failure_of(gather), HasSubstr("was given up: rank 0"));
    throw Error(ErrorCode::kInternal, first);
  });
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("timeout: "),
                                      HasSubstr("rank 0 of 2 waited 0.3 s "
                                                "inside ncclAllGather")),
                                ""));
  EXPECT_EQ(aborts() - before, 1);
}

TEST(TimeOut, CallsThatComeBackAreLeftAlone) {
  Stuck gpu;
  const int before = aborts();
  const auto said = over_nccl(*gpu.runtime, 2, [&](Collective& group) {
    std::uint32_t words[2] = {};
    for (int call = 0; call < 5; ++call) {
      std::this_thread::sleep_for(std::chrono::duration<double>(kTimeout / 3));
      group.all_gather(&words[group.rank()], words, sizeof words[0], nullptr);
    }
  });
  EXPECT_THAT(said, Each(""));
  EXPECT_EQ(aborts(), before);
}

}  // namespace
}  // namespace logpjit
