// A device under test, and random problems on it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/device_tensor.hpp"
#include "tuning/reference.hpp"

namespace logpjit::tests {

/// One runtime per device and process, so that kernels are compiled once.
/// Skips, with the reason, where there is no such device. The parameter is a
/// device, or a device and "+fallback": all calls are the fallback's.
class OnDevice : public testing::TestWithParam<std::string> {
 protected:
  static constexpr std::string_view kFallbackSuffix = "+fallback";

  void SetUp() override;
  Runtime& runtime() const { return *runtime_; }
  runtime::Device& device() const { return runtime_->engine().device(); }
  bool on_cpu() const { return GetParam().starts_with("cpu"); }
  bool on_fallback() const { return GetParam().ends_with(kFallbackSuffix); }

 private:
  static std::unique_ptr<Runtime>& instance(const std::string& name);
  Runtime* runtime_ = nullptr;
};

#define LOGPJIT_ON_DEVICES(suite)                                 \
  INSTANTIATE_TEST_SUITE_P(cpu, suite, testing::Values("cpu"),    \
                           [](const auto&) { return "device"; }); \
  INSTANTIATE_TEST_SUITE_P(gpu, suite, testing::Values("cuda"),   \
                           [](const auto&) { return "device"; })

/// The same, and once more served by the fallback.
#define LOGPJIT_ON_DEVICES_AND_FALLBACK(suite)                               \
  LOGPJIT_ON_DEVICES(suite);                                                 \
  INSTANTIATE_TEST_SUITE_P(fallback, suite, testing::Values("cpu+fallback"), \
                           [](const auto&) { return "cpu"; });               \
  INSTANTIATE_TEST_SUITE_P(gpu_fallback, suite,                              \
                           testing::Values("cuda+fallback"),                 \
                           [](const auto&) { return "device"; })

/// Host values of a tensor, kept as doubles that its dtype holds exactly.
struct HostMatrix {
  DType dtype = DType::kBf16;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> values;

  double& at(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

/// randn times `spread`, rounded to `dtype`.
HostMatrix random_matrix(DType dtype, std::int64_t rows, std::int64_t columns,
                         double spread, std::uint32_t seed);

/// Where a matrix lies in its buffer, in elements.
struct Placement {
  std::int64_t offset = 0;
  std::int64_t row_stride = 0;  ///< 0 = the row length
};

/// The matrix on the device; everything outside it is NaN.
tuning::DeviceTensor send(runtime::Device& device, const HostMatrix& matrix,
                          Placement placement = {});
tuning::DeviceTensor send(runtime::Device& device,
                          const std::vector<float>& values);
tuning::DeviceTensor send_ids(runtime::Device& device,
                              const std::vector<std::int64_t>& ids,
                              std::int64_t per_row);

/// The values of a rank-2 device view with unit column stride.
std::vector<double> fetch(runtime::Device& device,
                          const tuning::DeviceTensor& tensor);

tuning::Problem problem_of(const HostMatrix& matrix);

/// Uniform ids, every seventh of them ignored.
std::vector<std::int64_t> random_ids(std::int64_t count, std::int64_t vocab,
                                     std::uint32_t seed);
std::vector<float> random_floats(std::int64_t count, std::uint32_t seed);

/// All outputs of a forward on `logits`, poisoned before.
struct Values {
  tuning::DeviceTensor logp, entropy, lse, squares, argmax, max, sum;
};
Values poisoned_values(runtime::Device& device, std::int64_t rows,
                       std::int64_t ids_per_row);

/// The bits of floats, for comparisons that must be exact.
std::vector<std::uint32_t> bits(runtime::Device& device,
                                const tuning::DeviceTensor& tensor);

}  // namespace logpjit::tests
