// Refusals that name the argument.
#include "runtime/operations/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "logpjit/error.hpp"

namespace logpjit::runtime {
namespace {

/// Addresses [begin, end) that a view touches.
struct Extent {
  std::int64_t begin;
  std::int64_t end;
};

Extent extent_of(const TensorView& tensor) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] == 0) return {0, 0};
    const std::int64_t reach = (tensor.shape[i] - 1) * tensor.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const auto base =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  return {base + low * size, base + (high + 1) * size};
}

/// Below 0 when two extents overlap: both differences are.
std::int64_t overlap(const Extent& x, const Extent& y) {
  return (x.begin - y.end) & (y.begin - x.end);
}

std::string shape_text(const TensorView& tensor) {
  return fmt::format("[{}]",
                     fmt::join(std::span(tensor.shape.data(),
                                         static_cast<std::size_t>(tensor.rank)),
                               ", "));
}

std::string_view device_name(DeviceKind kind) {
  return kind == DeviceKind::kCpu ? "cpu" : "cuda";
}

}  // namespace

void refuse(std::string_view op, std::string_view argument,
            std::string_view what) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}: {}", op, argument, what));
}

void check_tensor(std::string_view op, DeviceId device, const Named& argument) {
  const TensorView& tensor = argument.tensor;
  if (!tensor.given()) refuse(op, argument.name, "is required");
  if (tensor.rank > TensorView::kMaxRank) {
    refuse(
        op, argument.name,
        fmt::format("rank {} is above {}", tensor.rank, TensorView::kMaxRank));
  }
  bool empty = false;
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] < 0) {
      refuse(op, argument.name,
             fmt::format("shape {} has a negative size", shape_text(tensor)));
    }
    empty = empty || tensor.shape[i] == 0;
  }
  if (tensor.device != device) {
    refuse(op, argument.name,
           fmt::format("lies on {}:{}, the runtime works on {}:{}",
                       device_name(tensor.device.kind), tensor.device.index,
                       device_name(device.kind), device.index));
  }
  if (empty) return;
  if (tensor.data == nullptr) refuse(op, argument.name, "null pointer");
  if (!is_element_aligned(tensor)) {
    refuse(op, argument.name,
           fmt::format("address {} is not a multiple of the {}-byte element",
                       fmt::ptr(tensor.data), size_of(tensor.dtype)));
  }
}

void check_dtype(std::string_view op, const Named& argument,
                 std::initializer_list<DType> allowed) {
  if (std::ranges::find(allowed, argument.tensor.dtype) != allowed.end()) {
    return;
  }
  std::vector<std::string_view> names;
  for (const DType dtype : allowed) names.push_back(name(dtype));
  refuse(op, argument.name,
         fmt::format("dtype {} is not {}", name(argument.tensor.dtype),
                     fmt::join(names, " or ")));
}

void check_matrix_form(std::string_view op, DeviceId device,
                       const Named& argument) {
  check_tensor(op, device, argument);
  check_dtype(op, argument, {DType::kFp32, DType::kBf16, DType::kFp16});
  const TensorView& tensor = argument.tensor;
  if (tensor.rank != 2 && tensor.rank != 3) {
    refuse(op, argument.name,
           fmt::format("shape {} is neither [N, V] nor [B, S, V]",
                       shape_text(tensor)));
  }
  if (tensor.shape[tensor.rank - 1] == 0) refuse(op, argument.name, "V is 0");
}

void check_matrix(std::string_view op, DeviceId device, const Named& argument) {
  check_matrix_form(op, device, argument);
  const TensorView& tensor = argument.tensor;
  const int last = tensor.rank - 1;
  if (tensor.strides[last] != 1 && tensor.shape[last] > 1) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: {}: stride {} along the vocabulary; rows must "
                            "be contiguous: copy the tensor first "
                            "(.contiguous() in PyTorch), or ask for "
                            "options.copy_strided",
                            op, argument.name, tensor.strides[last]));
  }
}

void check_contiguous(std::string_view op, const Named& argument) {
  const TensorView& tensor = argument.tensor;
  if (tensor.leading() == 0) return;  // strides of nothing mean nothing
  std::int64_t stride = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    if (tensor.shape[i] > 1 && tensor.strides[i] != stride) {
      refuse(op, argument.name, "must be contiguous");
    }
    stride *= tensor.shape[i];
  }
}

void check_finite_positive(std::string_view op, std::string_view argument,
                           double value) {
  if (std::isfinite(value) && value > 0) return;
  refuse(op, argument, fmt::format("{} is not finite and above 0", value));
}

void check_no_overlap(std::string_view op, std::initializer_list<Named> outputs,
                      std::initializer_list<Named> inputs) {
  // Every extent once and no branch for a pair: this stands in the way of each
  // launch.
  constexpr std::size_t kMostTensors = 16;
  std::array<Extent, kMostTensors> extents;
  std::array<const Named*, kMostTensors> given;
  std::size_t count = 0;
  const auto add = [&](std::initializer_list<Named> tensors) {
    for (const Named& named : tensors) {
      if (!named.tensor.given()) continue;
      if (count == kMostTensors) {
        throw Error(ErrorCode::kInternal, "too many tensors to compare");
      }
      extents[count] = extent_of(named.tensor);
      given[count++] = &named;
    }
  };
  add(outputs);
  const std::size_t written = count;
  add(inputs);
  std::int64_t any = 0;
  for (std::size_t i = 0; i < written; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      any |= overlap(extents[i], extents[j]);
    }
  }
  if (any >= 0) return;
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t i = 0; i < std::min(j, written); ++i) {
      if (overlap(extents[i], extents[j]) >= 0) continue;
      const bool both = j < written;  // the later output is the one to blame
      refuse(op, given[both ? j : i]->name,
             fmt::format("overlaps {}", given[both ? i : j]->name));
    }
  }
}

bool is_aligned(const TensorView& matrix) {
  const std::size_t size = size_of(matrix.dtype);
  bool aligned = reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0;
  for (int i = 0; i + 1 < matrix.rank; ++i) {
    const auto bytes = static_cast<std::uint64_t>(matrix.strides[i]) * size;
    aligned = aligned && (matrix.shape[i] <= 1 || bytes % 16 == 0);
  }
  return aligned;
}

}  // namespace logpjit::runtime
