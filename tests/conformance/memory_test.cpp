// What calls on large tensors take of a GPU's memory: nothing; and that rows
// beyond 2^31 elements are reached.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/conformance/harness.hpp"
#include "tuning/numeric.hpp"

namespace logpjit::tests {
namespace {

class Memory : public OnDevice {
 protected:
  /// Bytes of free memory that `call` takes while it runs.
  template <typename Call>
  std::size_t taken(Call&& call) {
    call();  // loads what it needs
    device().synchronize();
    const std::size_t before = device().free_bytes();
    std::size_t least = before;
    call();
    for (int i = 0; i < 50; ++i) {
      least = std::min(least, device().free_bytes());
    }
    device().synchronize();
    return before - std::min(before, std::min(least, device().free_bytes()));
  }

  float last_float(const tuning::DeviceTensor& tensor) {
    return tuning::download_floats(device(), tensor).back();
  }
};
INSTANTIATE_TEST_SUITE_P(gpu, Memory, testing::Values("cuda"),
                         [](const auto&) { return "device"; });
INSTANTIATE_TEST_SUITE_P(gpu_fallback, Memory, testing::Values("cuda+fallback"),
                         [](const auto&) { return "device"; });

TEST_P(Memory, NothingIsAllocated) {
  constexpr std::int64_t kVocab = 151936;
  for (const std::int64_t rows : {8192, 16384, 32768}) {
    SCOPED_TRACE(rows);
    const std::vector shape{rows, kVocab};
    const auto bytes = static_cast<std::size_t>(rows * kVocab * 2);
    const std::size_t needed = 2 * bytes + (std::size_t{4} << 30);
    if (device().free_bytes() < needed) {
      GTEST_SKIP() << fmt::format("{:.1f} GB of device memory are needed",
                                  static_cast<double>(needed) / 1e9);
    }
    const auto logits = tuning::poisoned_tensor(device(), DType::kBf16, shape);
    device().fill(logits.buffer->data(), 0, bytes);
    const auto gradient =
        tuning::poisoned_tensor(device(), DType::kBf16, shape);
    const auto ids = send_ids(
        device(),
        std::vector<std::int64_t>(static_cast<std::size_t>(rows), kVocab - 1),
        1);
    const auto upstream =
        send(device(), std::vector<float>(static_cast<std::size_t>(rows), 1));
    const Values out = poisoned_values(device(), rows, 1);
    const RowForward values{.logits = logits.view,
                            .ids = ids.view,
                            .logp = out.logp.view,
                            .max = out.max.view,
                            .sum = out.sum.view};
    const RowBackward back{.logits = logits.view,
                           .ids = ids.view,
                           .max = out.max.view,
                           .sum = out.sum.view,
                           .upstream = {.logp = upstream.view},
                           .gradient = {.tensor = gradient.view}};
    const std::size_t forward_bytes =
        taken([&] { forward(runtime(), values); });
    const std::size_t backward_bytes =
        taken([&] { backward(runtime(), back); });
    const std::size_t both_bytes = taken([&] {
      forward_with_grad(runtime(), {.values = values,
                                    .upstream = back.upstream,
                                    .gradient = back.gradient});
    });
    fmt::print("{} x {}: forward {}, backward {}, both at once {} bytes\n",
               rows, kVocab, forward_bytes, backward_bytes, both_bytes);
    EXPECT_EQ(forward_bytes, 0u);
    EXPECT_EQ(backward_bytes, 0u);
    EXPECT_EQ(both_bytes, 0u);
    EXPECT_NEAR(last_float(out.logp), -std::log(151936.0), 1e-5);
    std::uint16_t last = 0;
    device().copy_out(
        &last,
        static_cast<std::byte*>(gradient.buffer->data()) + bytes - sizeof last,
        sizeof last);
    EXPECT_EQ(last, 0x3f80)
        << "1 - p rounds to 1 in the last row's last column";
  }
}

}  // namespace
}  // namespace logpjit::tests
