// What a driver may refuse, lose or forget, on one that pretends: an image is
// compiled once more, everything else is said.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include "logpjit/error.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/engine.hpp"
#include "tests/support/device/fake_compiler.hpp"
#include "tests/support/fake_driver/fake_driver.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::runtime::cuda {
namespace {

using logpjit::testing::FakeCompiler;
using logpjit::testing::FakeDriver;
using logpjit::testing::FakeDriverAccess;
using logpjit::testing::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

FakeDriver& fake() {
  static FakeDriver& driver = [&]() -> FakeDriver& {
    void* library = dlopen(LOGPJIT_FAKE_DRIVER, RTLD_NOW);
    auto* access = reinterpret_cast<FakeDriverAccess*>(
        dlsym(library, "logpjit_fake_driver"));
    return *access();
  }();
  return driver;
}

const Driver& driver() { return Driver::open(LOGPJIT_FAKE_DRIVER, {}); }

KernelSpec spec_of(std::int64_t vocab = 1000) {
  KernelSpec spec = *parse_op("logp");
  spec.vocab = vocab;
  return spec;
}

/// An Error's code and message as one text; "" when nothing is thrown.
template <typename Work>
std::string failure_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return fmt::format("{}: {}", name(error.code()), error.message());
  }
  return "";
}

/// An engine on one of the pretended GPUs, as a process would have it.
class Process {
 public:
  explicit Process(const std::filesystem::path& cache, int device = 0)
      : compiler_(new FakeCompiler) {
    Options options;
    options.cache_directory = cache;
    options.log = [this](const std::string& line) { lines.push_back(line); };
    engine_ = std::make_unique<Engine>(
        options, std::make_unique<CudaDevice>(driver(), device),
        std::unique_ptr<Compiler>(compiler_));
  }

  Engine& engine() { return *engine_; }
  FakeCompiler& compiler() { return *compiler_; }
  void launch(const KernelSpec& spec = spec_of()) {
    engine_->program(spec, nullptr).launch(1, nullptr, 0);
  }
  std::uint64_t rejected() { return engine_->counters().rejected; }

  std::vector<std::string> lines;

 private:
  FakeCompiler* compiler_;
  std::unique_ptr<Engine> engine_;
};

class Refusal : public ::testing::Test {
 protected:
  void SetUp() override { fake().forget(); }
  void TearDown() override { fake().forget(); }

  std::filesystem::path cache() { return home_.path() / "cache"; }

  /// Puts an intact entry with these bytes where the kernel's own would be.
  void plant(const std::string& bytes) {
    Process process(cache());
    Engine& engine = process.engine();
    const auto choice = default_choices(spec_of(), engine.device().info());
    const auto key =
        engine.key(spec_of(), choice.back().config, engine.device().target());
    engine.images().find_or_compile(key, [&] {
      cache::Image image;
      image.kind = cache::ImageKind::kCubin;
      image.entry = "kernel";
      const auto all = std::as_bytes(std::span(bytes));
      image.bytes.assign(all.begin(), all.end());
      return image;
    });
  }

  TemporaryDirectory home_;
};

class RefusedImage : public Refusal,
                     public ::testing::WithParamInterface<const char*> {};

TEST_P(RefusedImage, IsCompiledOnceMoreAndReplaced) {
  plant(GetParam());
  Process process(cache());
  process.launch();
  EXPECT_EQ(process.compiler().compiles(), 1);
  EXPECT_EQ(process.rejected(), 1u);
  EXPECT_THAT(process.lines, Contains(HasSubstr("refused")));
  ASSERT_THAT(fake().launches, SizeIs(1));
  EXPECT_THAT(fake().launches[0].image, HasSubstr("sm_90a\n"));
  Process next(cache());
  next.launch();
  EXPECT_EQ(next.compiler().compiles(), 0);
  EXPECT_EQ(next.rejected(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, RefusedImage,
    ::testing::Values("\x7f"
                      "ELF and then nothing of use",
                      "random bytes 0123456789", "sm_80 for another GPU",
                      "FAKE:209 no binary", "FAKE:218 damaged PTX",
                      "FAKE:222 PTX of the future", "FAKE:300 no source",
                      "FAKE:500 lacks the kernel", "FAKE:999 unknown"),
    [](const auto& each) { return fmt::format("n{}", each.index); });

TEST_F(Refusal, DamageNeverReachesTheDriver) {
  Process(cache()).launch();
  for (const auto& file : std::filesystem::directory_iterator(cache())) {
    if (file.path().extension() != ".lpj") continue;
    std::fstream stream(file.path(),
                        std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(static_cast<std::streamoff>(file.file_size() / 2));
    stream.put('\x7f');
  }
  fake().loads.clear();
  Process process(cache());
  process.launch();
  EXPECT_EQ(process.compiler().compiles(), 1);
  EXPECT_EQ(process.rejected(), 0u) << "the cache notices, not the driver";
  EXPECT_THAT(fake().loads, SizeIs(1));
}

TEST_F(Refusal, TheFreshImageRefusedTooIsAClearError) {
  plant("random bytes 0123456789");
  Process process(cache());
  process.compiler().on_compile = [](const auto&, const auto&) {
    fake().answers["cuLibraryGetKernel"] = 218;
  };
  EXPECT_THAT(failure_of([&] { process.launch(); }),
              AllOf(HasSubstr("driver: "), HasSubstr("cuLibraryGetKernel"),
                    HasSubstr("218")));
  EXPECT_EQ(process.compiler().compiles(), 1) << "once more, not for ever";
  EXPECT_THAT(fake().launches, IsEmpty());
}

TEST_F(Refusal, PtxThatIsTooNewSaysWhatIsTooOld) {
  fake().answers["cuLibraryGetKernel"] = 222;
  Process process(cache());
  EXPECT_THAT(failure_of([&] { process.launch(); }),
              AllOf(HasSubstr("222"), HasSubstr("update the driver")));
}

TEST_F(Refusal, WhatIsNoFaultOfTheImageCostsNoCompile) {
  // Out of memory, a broken context, a capture that forbids it.
  for (const int code : {2, 201, 214, 700, 719, 900}) {
    Process(cache()).launch();
    fake().answers["cuKernelGetFunction"] = code;
    Process process(cache());
    EXPECT_THAT(failure_of([&] { process.launch(); }),
                AllOf(HasSubstr("driver: "), HasSubstr("cuKernelGetFunction"),
                      HasSubstr(fmt::format("{}", code))));
    EXPECT_EQ(process.compiler().compiles(), 0) << code;
    EXPECT_EQ(process.rejected(), 0u) << code;
    process.launch();
    EXPECT_EQ(process.compiler().compiles(), 0) << "the entry stayed good";
  }
}

TEST_F(Refusal, ARefusalWhereCompilingIsOffListsTheKey) {
  plant("random bytes 0123456789");
  Options options;
  options.cache_directory = cache();
  options.never_compile = true;
  Engine engine(options, std::make_unique<CudaDevice>(driver(), 0),
                std::make_unique<FakeCompiler>());
  EXPECT_THAT(failure_of([&] { engine.program(spec_of(), nullptr); }),
              AllOf(HasSubstr("not_cached: "), HasSubstr("spec: ")));
}

TEST_F(Refusal, UnlikeGpusShareACacheWithoutSharingImages) {
  fake().devices = {90, 120};
  Process(cache(), 0).launch();
  Process other(cache(), 1);
  other.launch();
  EXPECT_EQ(other.compiler().compiles(), 1);
  EXPECT_EQ(other.rejected(), 0u);
  EXPECT_THAT(fake().launches.back().image, HasSubstr("sm_120a"));
  Process same_again(cache(), 1);
  same_again.launch();
  EXPECT_EQ(same_again.compiler().compiles(), 0);
}

class Contexts : public Refusal {};

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
