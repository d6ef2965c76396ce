// Checks that read the device: ids and row numbers, when a call asks for it.
#include "runtime/operations/check_ids.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace logpjit::runtime {
namespace {

/// Integers fetched at once, when they lie one after the other.
constexpr std::int64_t kMostFetched = std::int64_t{1} << 16;

std::int64_t integer_at(const std::byte* bytes, DType dtype) {
  if (dtype == DType::kInt64) {
    std::int64_t value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::int32_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Runs of integers with unit stride: the last dimension, or all of a
/// contiguous tensor.
struct Runs {
  std::int64_t length = 1;
  int dimensions = 0;  ///< before those that a run covers
};

Runs runs_of(const TensorView& tensor) {
  Runs runs{.length = 1, .dimensions = tensor.rank};
  while (runs.dimensions > 0) {
    const auto last = static_cast<std::size_t>(runs.dimensions - 1);
    if (tensor.shape[last] > 1 && tensor.strides[last] != runs.length) break;
    runs.length *= tensor.shape[last];
    --runs.dimensions;
  }
  return runs;
}

/// Element offset of run `number`.
std::int64_t offset_of(const TensorView& tensor, const Runs& runs,
                       std::int64_t number) {
  std::int64_t offset = 0;
  for (int d = runs.dimensions - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    offset += number % tensor.shape[i] * tensor.strides[i];
    number /= tensor.shape[i];
  }
  return offset;
}

/// Index of the `n`-th element, as text.
std::string index_text(const TensorView& tensor, std::int64_t n) {
  std::array<std::int64_t, TensorView::kMaxRank> index{};
  for (int d = tensor.rank - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    index[i] = n % tensor.shape[i];
    n /= tensor.shape[i];
  }
  return fmt::format(
      "[{}]",
      fmt::join(std::span(index.data(), static_cast<std::size_t>(tensor.rank)),
                ", "));
}

}  // namespace

void check_range(std::string_view op, Device& device, const Named& argument,
                 std::int64_t limit, std::int64_t ignored) {
  const TensorView& tensor = argument.tensor;
  if (!tensor.given() || tensor.leading() == 0) return;
  device.synchronize();
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  const Runs runs = runs_of(tensor);
  const std::int64_t count = tensor.leading() / runs.length;
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(std::min(runs.length, kMostFetched) * size));
  for (std::int64_t run = 0; run < count; ++run) {
    const std::byte* from = static_cast<const std::byte*>(tensor.data) +
                            offset_of(tensor, runs, run) * size;
    for (std::int64_t first = 0; first < runs.length; first += kMostFetched) {
      const std::int64_t fetched = std::min(runs.length - first, kMostFetched);
      device.copy_out(bytes.data(), from + first * size,
                      static_cast<std::size_t>(fetched * size));
      for (std::int64_t i = 0; i < fetched; ++i) {
        const std::int64_t value =
            integer_at(bytes.data() + i * size, tensor.dtype);
        if ((value >= 0 && value < limit) || value == ignored) continue;
        refuse(op, argument.name,
               fmt::format("{} at {} is outside [0, {})", value,
                           index_text(tensor, run * runs.length + first + i),
                           limit));
      }
    }
  }
}

}  // namespace logpjit::runtime
