// What a call of a prepared kernel with eight tensors costs on the host above
// the bare driver launch of the same kernel with the same arguments: at most
// 0.3 us, the median of 100 000 calls.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

#include "runtime/cuda/cuda_objects.hpp"
#include "templates/common/arguments.cuh"
#include "tests/conformance/harness.hpp"
#include "tuning/bench_data.hpp"

namespace logpjit::tests {
namespace {

namespace cuda = runtime::cuda;
using Clock = std::chrono::steady_clock;

constexpr int kCalls = 100'000;
/// Fewer than the driver queues before a launch waits for the device.
constexpr int kCallsInARow = 500;
constexpr double kMostMicroseconds = 0.3;

class LaunchCost : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(gpu, LaunchCost, testing::Values("cuda"),
                         [](const auto&) { return "device"; });

using Call = std::function<void()>;

/// Medians in microseconds. The calls take turns, so that drift meets all
/// alike; each turn begins with the device idle.
template <std::size_t N>
std::array<double, N> medians_us(runtime::Device& device,
                                 const std::array<Call, N>& calls) {
  std::array<std::vector<double>, N> times;
  for (int done = 0; done < kCalls; done += kCallsInARow) {
    for (std::size_t c = 0; c < N; ++c) {
      device.synchronize();
      for (int i = 0; i < kCallsInARow; ++i) {
        const Clock::time_point begin = Clock::now();
        calls[c]();
        const Clock::time_point end = Clock::now();
        times[c].push_back(
            std::chrono::duration<double, std::micro>(end - begin).count());
      }
    }
  }
  std::array<double, N> medians{};
  for (std::size_t c = 0; c < N; ++c) {
    const auto middle = times[c].begin() + kCalls / 2;
    std::ranges::nth_element(times[c], middle);
    medians[c] = *middle;
  }
  return medians;
}

/// What `call` packs, by hand.
device::RowStatisticsArguments arguments_of(const RowForward& call) {
  device::RowStatisticsArguments arguments{};
  arguments.logits = call.logits.data;
  arguments.rows = {.inner_rows = 1,
                    .outer_stride = call.logits.strides[0],
                    .inner_stride = 0,
                    .index = nullptr,
                    .limit = 1};
  arguments.row_count = 1;
  arguments.ids.data = call.ids.data;
  arguments.ids_per_row = 1;
  arguments.ignore_id = call.ignore_id;
  arguments.transform.temperature = 1;
  arguments.logp = static_cast<float*>(call.logp.data);
  arguments.entropy = static_cast<float*>(call.entropy.data);
  arguments.lse = static_cast<float*>(call.lse.data);
  arguments.squares = static_cast<float*>(call.squares.data);
  arguments.max = static_cast<float*>(call.max.data);
  arguments.sum = static_cast<float*>(call.sum.data);
  return arguments;
}

void launch_bare(const cuda::Driver& driver, const runtime::Variant& variant,
                 device::RowStatisticsArguments& arguments) {
  const cuda::LaunchConfiguration configuration{
      variant.shape.grid,
      1,
      1,
      variant.shape.block,
      1,
      1,
      variant.shape.dynamic_shared_bytes,
      nullptr,
      nullptr,
      0};
  void* parameters[] = {&arguments};
  const auto& function =
      static_cast<const cuda::CudaFunction&>(*variant.function);
  driver.check(driver.launch_kernel_ex(&configuration, function.get(),
                                       parameters, nullptr),
               "cuLaunchKernelEx");
}

TEST_P(LaunchCost, AboveTheBareDriverLaunch) {
  const auto logits =
      send(device(), random_matrix(DType::kBf16, 1, 1024, 2, 1));
  const auto ids = send_ids(device(), {5}, 1);
  const Values out = poisoned_values(device(), 1, 1);
  const RowForward call{.logits = logits.view,
                        .ids = ids.view,
                        .logp = out.logp.view,
                        .entropy = out.entropy.view,
                        .lse = out.lse.view,
                        .squares = out.squares.view,
                        .max = out.max.view,
                        .sum = out.sum.view};
  KernelSpec spec;
  spec.terms = Terms::kLogp | Terms::kEntropy | Terms::kLse | Terms::kSquares;
  spec.vocab = 1024;
  const Kernel kernel = runtime().kernel(spec);
  const runtime::Variant& variant = kernel.program().variant(1);
  ASSERT_EQ(variant.shape.cluster, 1u);
  const auto& driver =
      cuda::Driver::open("", Options::from_environment().library_folders);
  const cuda::PrimaryContext context(driver, 0);
  const cuda::CurrentContext current(context);

  launch(kernel, call);
  const auto right = bits(device(), out.logp);
  tuning::poison_all(device(), {&out.logp, 1});
  auto arguments = arguments_of(call);
  launch_bare(driver, variant, arguments);
  ASSERT_EQ(bits(device(), out.logp), right) << "not the same launch";

  const auto [bare, held, called] =
      medians_us<3>(device(), {[&] { launch_bare(driver, variant, arguments); },
                               [&] { launch(kernel, call); },
                               [&] { forward(runtime(), call); }});
  fmt::print(
      "bare driver launch {:.2f} us; held kernel {:+.2f} us, by specification "
      "{:+.2f} us: medians of {} calls\n",
      bare, held - bare, called - bare, kCalls);
  EXPECT_LE(held - bare, kMostMicroseconds);
  EXPECT_LE(called - bare, kMostMicroseconds);
}

}  // namespace
}  // namespace logpjit::tests
