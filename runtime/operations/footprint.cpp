// Extents of strided views, and whose bytes are shared.
#include "runtime/operations/footprint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "logpjit/error.hpp"
#include "runtime/operations/check.hpp"

namespace logpjit::runtime {
namespace {

[[noreturn]] void refuse_extent(std::string_view op, const Named& argument) {
  const TensorView& tensor = argument.tensor;
  const auto text = [&](const auto& numbers) {
    return fmt::format(
        "[{}]", fmt::join(std::span(numbers.data(),
                                    static_cast<std::size_t>(tensor.rank)),
                          ", "));
  };
  refuse(op, argument.name,
         fmt::format("shape {} with strides {} at {} reaches beyond "
                     "what an address can be",
                     text(tensor.shape), text(tensor.strides),
                     fmt::ptr(tensor.data)));
}

}  // namespace

Extent extent_of(std::string_view op, const Named& argument) {
  const TensorView& tensor = argument.tensor;
  if (tensor.rank > TensorView::kMaxRank) {
    refuse(
        op, argument.name,
        fmt::format("rank {} is above {}", tensor.rank, TensorView::kMaxRank));
  }
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool beyond = false;
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] <= 0) return {0, 0};
    std::int64_t reach = 0;
    beyond |=
        __builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach);
    const std::int64_t below = reach < 0 ? reach : 0;
    beyond |= __builtin_add_overflow(low, below, &low);
    beyond |= __builtin_add_overflow(high, reach - below, &high);
  }
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  const auto base = reinterpret_cast<std::uintptr_t>(tensor.data);
  Extent extent;
  beyond |= __builtin_mul_overflow(low, size, &low);
  beyond |= __builtin_add_overflow(high, 1, &high);
  beyond |= __builtin_mul_overflow(high, size, &high);
  beyond |= __builtin_add_overflow(base, low, &extent.begin);
  beyond |= __builtin_add_overflow(base, high, &extent.end);
  if (beyond) refuse_extent(op, argument);
  return extent;
}

void Footprint::refuse_more() {
  throw Error(ErrorCode::kInternal, "too many tensors to compare");
}

/// Allocators give what they like: parts in no order are common.
void Footprint::compare_with_writes(std::uintptr_t begin, std::uintptr_t end) {
  bool shared = shared_;
  for (std::size_t i = 0; i < written_; ++i) {
    shared |= static_cast<bool>(static_cast<int>(writes_[i].begin < end) &
                                static_cast<int>(begin < writes_[i].end));
  }
  shared_ = shared;
}

void Footprint::check_parts(std::string_view op) const {
  const auto name_of = [](const Part& part) {
    return std::string_view(part.name, part.name_length);
  };
  const auto compare = [&](const Part& output, const Part& other) {
    if (!overlap(output, other)) return;
    refuse(op, name_of(output), fmt::format("overlaps {}", name_of(other)));
  };
  for (std::size_t j = 0; shared_ && j < written_; ++j) {
    for (std::size_t i = 0; i < j; ++i) compare(writes_[j], writes_[i]);
  }
  for (std::size_t j = 0; j < read_; ++j) {
    for (std::size_t i = 0; i < written_; ++i) compare(writes_[i], reads_[j]);
  }
}

}  // namespace logpjit::runtime
