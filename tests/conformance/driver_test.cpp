// A real driver: images it refuses, contexts that are reset, captures, kernels
// that wait, several GPUs, forks. What is computed is right all the same.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "logpjit/error.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/cuda/cuda_objects.hpp"
#include "runtime/launch_table.hpp"
#include "tests/conformance/harness.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::tests {
namespace {

namespace cuda = runtime::cuda;
using logpjit::testing::TemporaryDirectory;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kVocab = 20000;

/// A function of the driver that the product does not call.
template <typename Function>
Function* driver_function(const char* symbol) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, symbol));
}

class Driver : public OnDevice {
 protected:
  Options options() {
    Options options = Options::from_environment(
        [this](const std::string& line) { lines_.push_back(line); });
    options.device = GetParam();
    options.cache_directory = home_.path() / "cache";
    return options;
  }

  TemporaryDirectory home_;
  std::vector<std::string> lines_;
};
INSTANTIATE_TEST_SUITE_P(gpu, Driver, ::testing::Values("cuda"),
                         [](const auto&) { return "device"; });

KernelSpec spec_of(std::int64_t vocab = kVocab) {
  KernelSpec spec = *parse_op("logp");
  spec.vocab = vocab;
  return spec;
}

/// One forward with tensors of its own.
struct Job {
  Job(runtime::Device& device, std::int64_t vocab = kVocab)
      : matrix(random_matrix(DType::kBf16, kRows, vocab, 3, 7)),
        logits(send(device, matrix)),
        ids(send_ids(device, {0, 1, 2, 3, 4}, 1)),
        values(poisoned_values(device, kRows, 1)) {}

  RowForward call() const {
    return {.logits = logits.view,
            .ids = ids.view,
            .logp = values.logp.view,
            .max = values.max.view,
            .sum = values.sum.view};
  }

  HostMatrix matrix;
  tuning::DeviceTensor logits;
  tuning::DeviceTensor ids;
  Values values;
};

void expect_right(runtime::Device& device, const Job& job) {
  device.synchronize();
  const auto got = tuning::download_floats(device, job.values.logp);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto* begin = job.matrix.values.data() + row * job.matrix.columns;
    double sum = 0;
    for (std::int64_t i = 0; i < job.matrix.columns; ++i)
      sum += std::exp(begin[i]);
    const double right = begin[row] - std::log(sum);
    EXPECT_NEAR(got[static_cast<std::size_t>(row)], right, 2e-6) << row;
  }
}

cache::Image image_of(cache::ImageKind kind, const std::string& bytes) {
  cache::Image image;
  image.kind = kind;
  image.entry = "kernel";
  const auto all = std::as_bytes(std::span(bytes));
  image.bytes.assign(all.begin(), all.end());
  return image;
}

TEST_P(Driver, RefusedImagesAreCompiledOnceMore) {
  std::string noise(20000, '\0');
  std::mt19937 generator(1);
  for (char& byte : noise) byte = static_cast<char>(generator());
  const std::string ptx =
      ".version 9.9\n.target sm_90\n.address_size 64\n"
      ".visible .entry kernel()\n{\n ret;\n}\n";
  Runtime other(options());
  const auto& info = other.device();
  const LaunchConfig config =
      runtime::default_choices(spec_of(), info).back().config;
  const std::string foreign_arch = info.major == 8 ? "sm_90a" : "sm_80";
  const cache::Image foreign =
      *other.engine().build(spec_of(), config, foreign_arch).image;
  cache::Image nameless =
      *other.engine().build(spec_of(), config, device().target()).image;
  nameless.entry = "no_such_kernel";
  for (const cache::Image& planted :
       {image_of(cache::ImageKind::kCubin, noise),
        image_of(cache::ImageKind::kCubin, "text, not code"),
        image_of(cache::ImageKind::kPtx, ptx),
        image_of(cache::ImageKind::kPtx, ptx.substr(0, 60)), foreign,
        nameless}) {
    const TemporaryDirectory home;
    Options planting = options();
    planting.cache_directory = home.path() / "cache";
    const auto& choices = runtime::default_choices(spec_of(), info);
    {
      Runtime victim(planting);
      for (const auto& choice : choices) {
        const auto key =
            victim.engine().key(spec_of(), choice.config, device().target());
        victim.engine().images().find_or_compile(key, [&] { return planted; });
      }
    }
    Runtime runtime(planting);
    const Job job(runtime.engine().device());
    forward(runtime, job.call());
    expect_right(runtime.engine().device(), job);
    EXPECT_EQ(runtime.counters().rejected, choices.size());
    EXPECT_EQ(runtime.counters().compiled, choices.size());
    Runtime next(planting);
    next.prepare(std::vector{spec_of()});
    EXPECT_EQ(next.counters().compiled, 0u);
  }
  EXPECT_THAT(lines_, Contains(HasSubstr("refused")));
}

TEST_P(Driver, AResetContextIsTakenUpAgain) {
  auto* const reset = driver_function<int(int)>("cuDevicePrimaryCtxReset_v2");
  ASSERT_NE(reset, nullptr);
  Runtime runtime(options());
  {
    const Job job(runtime.engine().device());
    forward(runtime, job.call());
    expect_right(runtime.engine().device(), job);
  }
  ASSERT_EQ(reset(0), 0);
  const auto before = runtime.counters();
  {
    const Job job(runtime.engine().device());
    forward(runtime, job.call());
    expect_right(runtime.engine().device(), job);
    const Job other(runtime.engine().device(), 3000);
    forward(runtime, other.call());
    expect_right(runtime.engine().device(), other);
  }
  EXPECT_EQ(runtime.counters().rejected, 0u);
  EXPECT_GE(runtime.counters().loaded, before.loaded);
}

TEST_P(Driver, AResetContextIsTakenUpByTheLaunchItself) {
  auto* const reset = driver_function<int(int)>("cuDevicePrimaryCtxReset_v2");
  Runtime runtime(options());
  const cuda::Driver& driver =
      cuda::Driver::open("", options().library_folders);
  for (const bool bound : {true, false}) {
    const cuda::PrimaryContext context(driver, 0);
    const auto work = [&] {
      const auto current =
          bound ? std::make_unique<cuda::CurrentContext>(context) : nullptr;
      Job job(runtime.engine().device());
      forward(runtime, job.call());
      runtime.engine().device().synchronize();
      ASSERT_EQ(reset(0), 0);
      // Rows that are not read: the old memory is gone, the launch is not.
      RowForward empty = job.call();
      Kernel kernel = runtime.kernel(spec_of());
      try {
        launch(kernel, empty);
      } catch (const Error& error) {
        ADD_FAILURE() << error.message();
      }
      job.logits.buffer.release();  // of a context that is no more
      job.ids.buffer.release();
      for (auto* each : {&job.values.logp, &job.values.max, &job.values.sum}) {
        each->buffer.release();
      }
      ASSERT_EQ(reset(0), 0);  // whatever that launch did to the new one
    };
    std::thread(work).join();
  }
}

TEST_P(Driver, AKernelMayBeBornInsideACapture) {
  Runtime runtime(options());
  runtime::Device& gpu = runtime.engine().device();
  const Job job(gpu, 9000);
  const auto graph = gpu.capture(
      [&](CUstream_st* stream) { forward(runtime, job.call(), stream); });
  EXPECT_GT(graph->replay_ms(), 0.0);
  expect_right(gpu, job);
  EXPECT_EQ(runtime.counters().rejected, 0u);
}

/// Printed and recorded, not judged: time is no test.
TEST_P(Driver, TwoHundredWarmStarts) {
  using Clock = std::chrono::steady_clock;
  {
    Runtime filling(options());
    filling.prepare(std::vector{spec_of()});
  }
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    Runtime runtime(options());
    const Job job(runtime.engine().device());
    const auto begin = Clock::now();
    forward(runtime, job.call());
    const auto end = Clock::now();
    times.push_back(
        std::chrono::duration<double, std::milli>(end - begin).count());
    if (i % 50 == 0) expect_right(runtime.engine().device(), job);
    EXPECT_EQ(runtime.counters().compiled, 0u);
  }
  std::ranges::sort(times);
  fmt::print(
      "first call of a warm start, {} kernels: {:.3f} ms at the median, "
      "{:.3f} ms at the ninetieth percentile\n",
      runtime::default_choices(spec_of(), runtime().device()).size(),
      times[100], times[180]);
}

/// Runs until the flag in host memory is set, two seconds at most.
constexpr const char* kWaitingKernel = R"(
.version 7.8
.target sm_70
.address_size 64
.visible .entry wait_for_host(.param .u64 flag)
{
  .reg .pred %p<3>;
  .reg .u32 %r<2>;
  .reg .u64 %rd<6>;
  ld.param.u64 %rd1, [flag];
  ld.u64 %rd1, [%rd1];
  mov.u64 %rd2, %globaltimer;
  add.u64 %rd2, %rd2, 2000000000;
AGAIN:
  ld.volatile.u32 %r1, [%rd1];
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  mov.u64 %rd3, %globaltimer;
  setp.lt.u64 %p2, %rd3, %rd2;
  @%p2 bra AGAIN;
DONE:
  ret;
}
)";

TEST_P(Driver, PreparedKernelsDoNotWaitForOnesThatRun) {
  using Clock = std::chrono::steady_clock;
  Runtime runtime(options());
  runtime::Device& gpu = runtime.engine().device();
  const Job job(gpu);
  forward(runtime, job.call());
  gpu.synchronize();
  auto* const allocate =
      driver_function<int(void**, std::size_t, unsigned)>("cuMemHostAlloc");
  auto* const release = driver_function<int(void*)>("cuMemFreeHost");
  const cuda::Driver& driver =
      cuda::Driver::open("", options().library_folders);
  const cuda::PrimaryContext context(driver, 0);
  const cuda::CurrentContext current(context);
  void* flag = nullptr;
  ASSERT_EQ(allocate(&flag, 64, 0), 0);
  auto* const set = static_cast<volatile std::uint32_t*>(flag);
  *set = 0;
  cache::Image image = image_of(cache::ImageKind::kPtx, kWaitingKernel);
  image.entry = "wait_for_host";
  // Its parameter is the address of the pointer: one level more, so that the
  // kernel reads it from the argument buffer's copy.
  const auto holder = gpu.allocate(8);
  gpu.copy_in(holder->data(), &flag, 8);
  const auto waiting = gpu.load(image, 0);
  CUstream_st* const busy = gpu.make_stream();
  CUstream_st* const quick = gpu.make_stream();
  void* const argument = holder->data();
  const auto begin = Clock::now();
  gpu.launch(*waiting, {}, busy, &argument, sizeof argument);
  forward(runtime, job.call(), quick);
  const auto done = gpu.record(quick);
  gpu.elapsed_ms(*done, *done);
  const double seconds =
      std::chrono::duration<double>(Clock::now() - begin).count();
  *set = 1;
  gpu.synchronize();
  expect_right(gpu, job);
  EXPECT_LT(seconds, 1) << "it waited for the other kernel";
  gpu.free_stream(busy);
  gpu.free_stream(quick);
  release(flag);
}

TEST_P(Driver, EachGpuHasImagesOfItsOwn) {
  const cuda::Driver& driver =
      cuda::Driver::open("", options().library_folders);
  if (cuda::device_count(driver) < 2) GTEST_SKIP() << "one GPU here";
  Runtime first(options());
  Options second_options = options();
  second_options.device = "cuda:1";
  Runtime second(second_options);
  const Job here(first.engine().device());
  const Job there(second.engine().device());
  for (int i = 0; i < 2; ++i) {
    forward(second, there.call());
    forward(first, here.call());
  }
  expect_right(first.engine().device(), here);
  expect_right(second.engine().device(), there);
  EXPECT_EQ(bits(first.engine().device(), here.values.logp),
            bits(second.engine().device(), there.values.logp));
  EXPECT_THROW(forward(first, there.call()), Error);
}

TEST_P(Driver, AForkedChildIsToldAndTheParentGoesOn) {
  Runtime runtime(options());
  runtime::Device& gpu = runtime.engine().device();
  const Job job(gpu);
  forward(runtime, job.call());
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    try {
      forward(runtime, job.call());
    } catch (const Error& error) {
      const bool told = error.code() == ErrorCode::kUnavailable &&
                        error.message().find("forked") != std::string::npos;
      _exit(told ? 0 : 1);
    }
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  forward(runtime, job.call());
  expect_right(gpu, job);
}

}  // namespace
}  // namespace logpjit::tests
