// A case's inputs in device memory, laid out as the case says.
#pragma once

#include "logpjit/dtype.hpp"
#include "runtime/device.hpp"
#include "tuning/cases.hpp"
#include "tuning/device_tensor.hpp"

namespace logpjit::tuning {

/// `pattern` (the case's logits or its teacher's) as `dtype`, with the case's
/// shape, strides and offset. Elements outside the view are NaN where the case
/// asks for it, else left as they come.
DeviceTensor upload_logits(runtime::Device& device, const Case& one,
                           const LogitsPattern& pattern, DType dtype);

/// Shape [N] or [B, S], with a trailing K when there are several per row.
DeviceTensor upload_ids(runtime::Device& device, const Case& one, DType dtype);

/// fp32, contiguous.
DeviceTensor upload_floats(runtime::Device& device,
                           const std::vector<double>& values,
                           std::span<const std::int64_t> shape);

/// int64 [N]: each row's number, -1 where the mask leaves it out.
DeviceTensor upload_row_index(runtime::Device& device, const Case& one);

/// The dimensions of a per-row tensor: [N] or [B, S], then `trailing` unless
/// it is 1.
std::vector<std::int64_t> row_shape(const Case& one, std::int64_t trailing = 1);

/// Device bytes of logits, gradients and all per-row tensors of one run.
std::int64_t device_bytes(const Case& one, DType dtype);

}  // namespace logpjit::tuning
