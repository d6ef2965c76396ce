// What a call of a prepared kernel costs on the host beside the bare driver
// launch of the same kernel. Printed and recorded, not judged: time is no test.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "runtime/cuda/cuda_objects.hpp"
#include "templates/common/arguments.cuh"
#include "tests/conformance/harness.hpp"

namespace logpjit::tests {
namespace {

class LaunchCost : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(gpu, LaunchCost, testing::Values("cuda"),
                         [](const auto&) { return "device"; });

/// Median of 100 000 calls, microseconds, the stream drained every 512.
double median_us(runtime::Device& device, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < 100'000; ++i) {
    if (i % 512 == 0) device.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    call();
    const auto end = std::chrono::steady_clock::now();
    times.push_back(
        std::chrono::duration<double, std::micro>(end - begin).count());
  }
  std::ranges::nth_element(times, times.begin() + times.size() / 2);
  return times[times.size() / 2];
}

TEST_P(LaunchCost, BesideTheBareDriverLaunch) {
  namespace cuda = runtime::cuda;
  const HostMatrix matrix = random_matrix(DType::kBf16, 1, 1024, 2, 1);
  const auto logits = send(device(), matrix);
  const auto ids = send_ids(device(), {5}, 1);
  const Values out = poisoned_values(device(), 1, 1);
  const RowForward call{.logits = logits.view,
                        .ids = ids.view,
                        .logp = out.logp.view,
                        .max = out.max.view,
                        .sum = out.sum.view};
  KernelSpec spec;
  spec.vocab = 1024;
  const Kernel kernel = runtime().kernel(spec);
  const runtime::Variant& variant = kernel.program().variant(1);
  const auto& driver =
      cuda::Driver::open("", Options::from_environment().library_folders);
  const auto& function =
      static_cast<const cuda::CudaFunction&>(*variant.function);
  logpjit::device::RowStatisticsArguments arguments{};
  arguments.logits = logits.view.data;
  arguments.rows = {.inner_rows = 1,
                    .outer_stride = 0,
                    .inner_stride = 1024,
                    .index = nullptr,
                    .limit = 1};
  arguments.row_count = 1;
  arguments.ids.data = ids.view.data;
  arguments.ids_per_row = 1;
  arguments.logp = static_cast<float*>(out.logp.view.data);
  const auto bare = [&] {
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
    driver.check(driver.launch_kernel_ex(&configuration, function.get(),
                                         parameters, nullptr),
                 "cuLaunchKernelEx");
  };
  const cuda::PrimaryContext context(driver, 0);
  const cuda::CurrentContext current(context);
  launch(kernel, call);  // warm
  const double bare_us = median_us(device(), bare);
  const double held_us = median_us(device(), [&] { launch(kernel, call); });
  const double called_us =
      median_us(device(), [&] { forward(runtime(), call); });
  fmt::print(
      "bare driver launch {:.2f} us; held kernel {:.2f} us (+{:.2f}); by "
      "specification {:.2f} us (+{:.2f})\n",
      bare_us, held_us, held_us - bare_us, called_us, called_us - bare_us);
  EXPECT_GT(bare_us, 0);
}

}  // namespace
}  // namespace logpjit::tests
