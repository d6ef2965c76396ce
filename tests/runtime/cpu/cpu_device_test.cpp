// The device around the executor: loading, launch checks, memory, clock, fork.
#include "runtime/cpu/cpu_device.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <thread>

#include "runtime/cpu/sanitizer.hpp"
#include "tests/runtime/cpu/host_kernels.hpp"
#include "tests/support/device/fake_compiler.hpp"
#include "tests/support/device/null_device.hpp"

namespace logpjit::runtime::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

template <typename Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::kInternal, "");
}

const cache::Image& image() {
  static const cache::Image made = shared_compiler().compile(
      make_source("if (thread_index() == 0) a.out[block_index()] = 1;"),
      shared_device().target());
  return made;
}

TEST(CpuDevice, SaysWhatItIs) {
  const CpuDevice device({.threads = 3});
  EXPECT_EQ(device.info().id, (DeviceId{DeviceKind::kCpu, 0}));
  EXPECT_EQ(device.info().multiprocessors, 3);
  EXPECT_FALSE(device.info().name.empty());
  EXPECT_GT(device.info().memory_bytes, 0);
  EXPECT_GT(device.free_bytes(), 0u);
  EXPECT_LE(device.free_bytes(), std::size_t(device.info().memory_bytes));
  EXPECT_THAT(device.target(), HasSubstr("-linux"));
  EXPECT_GE(CpuDevice().info().multiprocessors, 1);
}

TEST(CpuDevice, RefusesImagesThatAreNone) {
  cache::Image broken = image();
  broken.kind = cache::ImageKind::kCubin;
  const auto load = [&] { shared_device().load(broken, 0); };
  EXPECT_EQ(error_of(load).code(), ErrorCode::kDriver);
  broken = image();
  broken.entry = "no_such_kernel";
  EXPECT_THAT(error_of(load).message(), HasSubstr("no_such_kernel"));
  EXPECT_EQ(error_of(load).code(), ErrorCode::kDriver);
  EXPECT_EQ(error_of([] { shared_device().load(image(), 1u << 20); }).code(),
            ErrorCode::kDriver);
}

TEST(CpuDevice, RefusesFilesCutShortAtAnyPlace) {
  // Cut where sections begin, everything loadable is there and loading may
  // succeed; anything else must be an error and never a crash.
  for (std::size_t size = 0; size < image().bytes.size(); size += 97) {
    cache::Image cut = image();
    cut.bytes.resize(size);
    try {
      shared_device().load(cut, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDriver) << size;
    }
  }
  cache::Image empty = image();
  empty.bytes.clear();
  EXPECT_THAT(error_of([&] { shared_device().load(empty, 0); }).message(),
              HasSubstr("cut short"));
  cache::Image text = image();
  std::fill(text.bytes.begin(), text.bytes.end(), std::byte{'x'});
  EXPECT_THAT(error_of([&] { shared_device().load(text, 0); }).message(),
              HasSubstr("ELF"));
}

TEST(CpuDevice, ManyKernelsAreTheirOwn) {
  // File numbers are reused from load to load; the code must not be.
  std::vector<std::unique_ptr<Function>> kernels;
  for (int i = 0; i < 3; ++i) {
    kernels.push_back(build(fmt::format("a.integers[0] = {};", i)));
  }
  for (int i = 0; i < 3; ++i) {
    int out = -1;
    launch(*kernels[i], {}, {.integers = &out});
    EXPECT_EQ(out, i);
  }
}

TEST(CpuDevice, ChecksLaunches) {
  const auto kernel = shared_device().load(image(), 0);
  const auto refusal = [&](const LaunchShape& shape) {
    const Error error = error_of([&] { launch(*kernel, shape, {}); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  };
  EXPECT_THAT(refusal({.grid = 0}), HasSubstr("cannot launch probe: grid 0"));
  EXPECT_THAT(refusal({.grid = 1u << 31}), HasSubstr("grid 2147483648"));
  EXPECT_THAT(refusal({.block = 0}), HasSubstr("block 0"));
  EXPECT_THAT(refusal({.block = 1025}), HasSubstr("block 1025"));
  EXPECT_THAT(refusal({.grid = 3, .cluster = 2}), HasSubstr("cluster 2"));
  EXPECT_THAT(refusal({.grid = 17, .cluster = 17}), HasSubstr("cluster 17"));
  EXPECT_THAT(refusal({.dynamic_shared_bytes = 300 << 10}),
              HasSubstr("307200 bytes"));
  const Error error = error_of(
      [&] { shared_device().launch(*kernel, {}, nullptr, &kernel, 8); });
  EXPECT_THAT(error.message(), HasSubstr("8 bytes of arguments where it takes "
                                         "32"));
}

TEST(CpuDevice, RefusesAnotherDevicesFunction) {
  ::logpjit::testing::NullDevice null;
  const auto foreign = null.load(image(), 0);
  EXPECT_EQ(error_of([&] { launch(*foreign, {}, {}); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(CpuDevice, LaunchesFromManyThreadsAtOnce) {
  const auto kernel = shared_device().load(image(), 0);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> outs(4, std::vector<float>(50));
  for (auto& out : outs) {
    threads.emplace_back([&] {
      for (int times = 0; times < 20; ++times) {
        launch(*kernel, {.grid = 50, .block = 64}, {.out = out.data()});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& out : outs) EXPECT_THAT(out, ::testing::Each(1.0f));
}

TEST(CpuDevice, ShapesMayChangeFromLaunchToLaunch) {
  const auto kernel = build(R"(
    if (thread_index() == 0) shared_memory<int>(0)[0] = 5;
    sync_cluster();
    a.integers[block_index()] = shared_memory<int>(0)[0];
  )");
  for (const LaunchShape& shape :
       {LaunchShape{1, 1, 1, 4}, LaunchShape{4, 1024, 4, 4096},
        LaunchShape{8, 33, 2, 4}, LaunchShape{2, 256, 1, 100000},
        LaunchShape{2, 1, 2, 4}}) {
    std::vector<int> out(shape.grid, -1);
    launch(*kernel, shape, {.integers = out.data()});
    EXPECT_THAT(out, ::testing::Each(5)) << shape.block;
  }
}

TEST(CpuDevice, RunningBackwardShowsAMissingBarrier) {
  CpuDevice forward({.threads = 1});
  CpuDevice backward({.threads = 1, .order = ThreadOrder::kBackward});
  const auto results = [&](const char* barrier) {
    const cache::Image made =
        shared_compiler().compile(make_source(fmt::format(R"(
          const int t = thread_index();
          shared_memory<int>(0)[t] = t;
          {};
          a.integers[t] = shared_memory<int>(0)[63 - t];)",
                                                          barrier)),
                                  forward.target());
    std::vector<std::vector<int>> outs(2, std::vector<int>(64));
    for (int i = 0; i < 2; ++i) {
      CpuDevice& device = i == 0 ? forward : backward;
      const Arguments arguments{.integers = outs[i].data()};
      device.launch(*device.load(made, 0),
                    {.block = 64, .dynamic_shared_bytes = 256}, nullptr,
                    &arguments, sizeof arguments);
    }
    return outs;
  };
  const auto right = results("sync_threads()");
  EXPECT_EQ(right[0], right[1]);
  const auto wrong = results("");
  EXPECT_NE(wrong[0], wrong[1]);
}

TEST(CpuDevice, MemoryAndCopies) {
  CpuDevice& device = shared_device();
  const auto buffer = device.allocate(1000);
  EXPECT_EQ(buffer->size(), 1000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 256, 0u);
  device.fill(buffer->data(), 0x5a, 1000);
  const std::vector<unsigned char> in(10, 3);
  device.copy_in(buffer->data(), in.data(), in.size());
  std::vector<unsigned char> out(11);
  device.copy_out(out.data(), buffer->data(), out.size());
  EXPECT_EQ(out[9], 3);
  EXPECT_EQ(out[10], 0x5a);
  device.copy(nullptr, nullptr, 0, nullptr);
  EXPECT_EQ(device.allocate(0)->size(), 0u);
#if !defined(LOGPJIT_ADDRESS_SANITIZER) && !defined(LOGPJIT_THREAD_SANITIZER)
  // Sanitizers end the program instead.
  EXPECT_EQ(error_of([&] { device.allocate(std::size_t{1} << 60); }).code(),
            ErrorCode::kDriver);
#endif
}

TEST(CpuDevice, ClockAndStreams) {
  CpuDevice& device = shared_device();
  CUstream_st* stream = device.make_stream();
  EXPECT_NE(stream, nullptr);
  const auto begin = device.record(stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto end = device.record(stream);
  EXPECT_GE(device.elapsed_ms(*begin, *end), 4.9);
  EXPECT_LE(device.elapsed_ms(*end, *begin), -4.9);
  device.free_stream(stream);
  int runs = 0;
  const auto graph = device.capture([&](CUstream_st*) { ++runs; });
  for (int i = 0; i < 5; ++i) EXPECT_GE(graph->replay_ms(), 0);
  EXPECT_EQ(runs, 5);
}

/// Whether `call` ends with Error{kUnavailable}.
template <typename Call>
bool unavailable(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == ErrorCode::kUnavailable;
  }
  return false;
}

bool runs_on_a_fresh_device() {
#if defined(LOGPJIT_THREAD_SANITIZER)
  return true;  // it forbids new threads in a forked child
#endif
  CpuDevice device({.threads = 1});
  float out = 0;
  const Arguments arguments{.out = &out};
  device.launch(*device.load(image(), 0), {}, nullptr, &arguments,
                sizeof arguments);
  return out == 1;
}

TEST(CpuDevice, ALaunchInAForkedChildIsAnErrorAndNoHang) {
  const auto kernel = shared_device().load(image(), 0);
  float out = 0;
  launch(*kernel, {}, {.out = &out});
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const bool refused =
        unavailable([&] { launch(*kernel, {}, {.out = &out}); });
    _exit(refused && runs_on_a_fresh_device() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(FakeCompiler, IsDeterministicAndCounts) {
  ::logpjit::testing::FakeCompiler compiler;
  generator::Source source;
  source.text = "text";
  source.name_expression = "kernel<1>";
  const cache::Image one = compiler.compile(source, "sm_90a");
  EXPECT_EQ(one, compiler.compile(source, "sm_90a"));
  EXPECT_FALSE(one == compiler.compile(source, "sm_80"));
  EXPECT_EQ(one.entry, "kernel<1>");
  EXPECT_EQ(compiler.compiles(), 3);
  compiler.on_compile = [](const auto&, const auto&) {
    throw Error(ErrorCode::kCompileFailed, "no");
  };
  EXPECT_THROW(compiler.compile(source, "sm_90a"), Error);
  EXPECT_EQ(compiler.compiles(), 4);
}

TEST(NullDevice, RecordsWhatIsLaunched) {
  ::logpjit::testing::NullDevice device;
  const auto function = device.load(image(), 0);
  device.on_time = [](const auto& launches) {
    return double(launches.size()) * 2;
  };
  const int argument = 7;
  const auto graph = device.capture([&](CUstream_st* stream) {
    device.launch(*function, {.grid = 9}, stream, &argument, sizeof argument);
  });
  EXPECT_EQ(graph->replay_ms(), 2.0);
  EXPECT_EQ(graph->replay_ms(), 2.0);
  ASSERT_THAT(device.launches(), SizeIs(2));
  const auto last = device.launches().back();
  EXPECT_EQ(last.function, function.get());
  EXPECT_EQ(last.shape.grid, 9u);
  EXPECT_EQ(last.arguments.size(), sizeof argument);
  EXPECT_EQ(last.arguments[0], std::byte{7});
  EXPECT_EQ(device.loads(), 1);
}

}  // namespace
}  // namespace logpjit::runtime::testing
