// What becomes of contexts, on a driver that pretends: other devices, resets,
// forks, the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "tests/runtime/cuda/pretended_gpu.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::runtime::cuda {
namespace {

using logpjit::testing::FakeCompiler;
using logpjit::testing::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Contexts : public ::testing::Test {
 protected:
  void SetUp() override { fake().forget(); }
  void TearDown() override { fake().forget(); }

  std::filesystem::path cache() { return home_.path() / "cache"; }

  TemporaryDirectory home_;
};

TEST_F(Contexts, EachDeviceHasImagesAndLaunchesOfItsOwn) {
  fake().devices = {90, 90};
  Process first(cache(), 0);
  Process second(cache(), 1);
  fake().set_current(0);
  second.launch();
  first.launch();
  second.launch();
  EXPECT_EQ(fake().current_device(), 0) << "what was current is again";
  EXPECT_EQ(first.compiler().compiles() + second.compiler().compiles(), 1);
  ASSERT_THAT(fake().loads, SizeIs(2));
  EXPECT_EQ(fake().loads[0].device, 1);
  EXPECT_EQ(fake().loads[1].device, 0);
  ASSERT_THAT(fake().launches, SizeIs(3));
  EXPECT_EQ(fake().launches[0].device, 1);
  EXPECT_EQ(fake().launches[1].device, 0);
  EXPECT_EQ(fake().launches[2].device, 1);
}

TEST_F(Contexts, AResetIsSurvivedByPreparedKernels) {
  Process process(cache());
  fake().set_current(0);
  process.launch();
  fake().reset_context(0);
  EXPECT_EQ(failure_of([&] { process.launch(); }), "");
  EXPECT_THAT(fake().launches, SizeIs(2));
  EXPECT_EQ(process.compiler().compiles(), 1);
  EXPECT_EQ(process.rejected(), 0u);
}

TEST_F(Contexts, AResetIsSurvivedInThreadsWithoutAContext) {
  Process process(cache());
  process.launch();
  fake().reset_context(0);
  std::thread([&] {
    EXPECT_EQ(failure_of([&] { process.launch(); }), "");
    EXPECT_EQ(fake().current_device(), -1) << "a context was left behind";
  }).join();
  EXPECT_THAT(fake().launches, SizeIs(2));
}

TEST_F(Contexts, AfterAResetNewKernelsLoad) {
  Process process(cache());
  fake().set_current(0);
  process.launch();
  fake().reset_context(0);
  EXPECT_EQ(failure_of([&] { process.launch(spec_of(2000)); }), "");
  EXPECT_EQ(process.rejected(), 0u);
}

TEST_F(Contexts, AfterAResetThereIsMemoryAgain) {
  Process process(cache());
  Device& gpu = process.engine().device();
  fake().set_current(0);
  process.launch();
  fake().reset_context(0);
  EXPECT_EQ(failure_of([&] {
              const auto buffer = gpu.allocate(64);
              gpu.synchronize();
            }),
            "");
  fake().reset_context(0);
  EXPECT_EQ(failure_of([&] { gpu.synchronize(); }), "");
  EXPECT_EQ(failure_of([&] { process.launch(); }), "");
}

/// A call of a device, by name: what it needs is made when nothing is wrong.
struct DeviceCall {
  const char* name;
  std::function<void(Device&, Event&, Graph&)> call;
};

const DeviceCall kDeviceCalls[] = {
    {"allocate", [](Device& gpu, Event&, Graph&) { gpu.allocate(64); }},
    {"allocate_host",
     [](Device& gpu, Event&, Graph&) { gpu.allocate_host(64); }},
    {"copy_in", [](Device& gpu, Event&, Graph&) { gpu.copy_in(0, 0, 0); }},
    {"copy_out", [](Device& gpu, Event&, Graph&) { gpu.copy_out(0, 0, 0); }},
    {"fill", [](Device& gpu, Event&, Graph&) { gpu.fill(0, 0, 0); }},
    {"copy", [](Device& gpu, Event&, Graph&) { gpu.copy(0, 0, 0, nullptr); }},
    {"synchronize", [](Device& gpu, Event&, Graph&) { gpu.synchronize(); }},
    {"free_bytes", [](Device& gpu, Event&, Graph&) { gpu.free_bytes(); }},
    {"make_event", [](Device& gpu, Event&, Graph&) { gpu.make_event(); }},
    {"mark", [](Device& gpu, Event& event, Graph&) { gpu.mark(event, 0); }},
    {"wait_for",
     [](Device& gpu, Event& event, Graph&) { gpu.wait_for(0, event); }},
    {"reached", [](Device& gpu, Event& event, Graph&) { gpu.reached(event); }},
    {"bind_thread", [](Device& gpu, Event&, Graph&) { gpu.bind_thread(); }},
    {"streams",
     [](Device& gpu, Event&, Graph&) { gpu.free_stream(gpu.make_stream()); }},
    {"record", [](Device& gpu, Event&, Graph&) { gpu.record(nullptr); }},
    {"elapsed_ms",
     [](Device& gpu, Event& event, Graph&) { gpu.elapsed_ms(event, event); }},
    {"capture",
     [](Device& gpu, Event&, Graph&) { gpu.capture([](CUstream_st*) {}); }},
    {"replay", [](Device&, Event&, Graph& graph) { graph.replay_ms(); }},
    {"is_capturing",
     [](Device& gpu, Event&, Graph&) { gpu.is_capturing(nullptr); }},
};

TEST_F(Contexts, EveryCallTakesUpANewContextInAThreadThatHoldsTheOldOne) {
  Process process(cache());
  Device& gpu = process.engine().device();
  for (const DeviceCall& each : kDeviceCalls) {
    const auto event = gpu.make_event();
    const auto graph = gpu.capture([](CUstream_st*) {});
    fake().set_current(0);
    const int before = fake().retained;
    fake().reset_context(0);
    EXPECT_EQ(failure_of([&] { each.call(gpu, *event, *graph); }), "")
        << each.name;
    EXPECT_EQ(fake().retained, before + 1) << each.name << " took it once";
    EXPECT_EQ(fake().current_device(), 0) << each.name;
    fake().set_current(-1);
  }
}

TEST_F(Contexts, OneThatStaysLostIsAnError) {
  Process process(cache());
  process.launch();
  fake().all_answer = 709;
  EXPECT_THAT(failure_of([&] { process.launch(); }),
              AllOf(HasSubstr("driver: "), HasSubstr("709")));
  fake().all_answer = 0;
}

TEST_F(Contexts, OwnersOutliveTheDriver) {
  Process process(cache());
  const auto buffer = process.engine().device().allocate(64);
  const auto event = process.engine().device().record(nullptr);
  const auto graph = process.engine().device().capture([](CUstream_st*) {});
  fake().all_answer = 4;  // the driver is shutting down
}

TEST_F(Contexts, AForkedChildIsToldThatCudaDoesNotWorkThere) {
  Process process(cache());
  process.launch();
  auto buffer = process.engine().device().allocate(64);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const std::string launching = failure_of([&] { process.launch(); });
    const std::string opening = failure_of([&] { driver(); });
    buffer.reset();
    const bool said = launching.starts_with("unavailable: ") &&
                      launching.find("forked") != std::string::npos &&
                      opening == launching;
    _exit(said && fake().launches.size() == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  process.launch();
}

TEST_F(Contexts, AForkedChildWithoutAGpuOfItsOwnStillCompiles) {
  Process process(cache());
  process.launch();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    Options options;
    options.cache_directory = cache();
    Engine engine(options, nullptr, std::make_unique<FakeCompiler>());
    DeviceInfo info;
    info.id.kind = DeviceKind::kCuda;
    const auto choice = default_choices(spec_of(), info);
    const auto built =
        engine.build(spec_of(2000), choice.back().config, "sm_90a");
    _exit(built.image->bytes.empty() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace logpjit::runtime::cuda
