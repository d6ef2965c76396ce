// Refusals that name the argument.
#include "runtime/operations/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <span>
#include <vector>

#include "logpjit/error.hpp"

namespace logpjit::runtime {
namespace {

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

void find_fault(std::string_view op, DeviceId device, const Named& argument) {
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

void refuse_dtype(std::string_view op, const Named& argument,
                  std::initializer_list<DType> allowed) {
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

void find_matrix_fault(std::string_view op, DeviceId device,
                       const Named& argument) {
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
  Footprint footprint;
  for (const Named& output : outputs) {
    if (!output.tensor.given()) continue;
    const Extent bytes = extent_of(op, output);
    footprint.write(output.name, bytes.begin, bytes.end);
  }
  for (const Named& input : inputs) {
    if (!input.tensor.given()) continue;
    const Extent bytes = extent_of(op, input);
    footprint.read(input.name, bytes.begin, bytes.end);
  }
  footprint.check(op);
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
