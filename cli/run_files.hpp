// The .npy files a run reads, as tensors.
#pragma once

#include <string>

#include "logpjit/tensor.hpp"
#include "runtime/device.hpp"
#include "tuning/device_tensor.hpp"
#include "tuning/npy.hpp"

namespace logpjit::cli {

/// An array from a file; default = not given.
struct HostTensor {
  tuning::NpyArray array;
  DType dtype = DType::kFp32;

  bool given() const { return !array.shape.empty(); }
  /// Of the array's own memory; valid as long as it.
  TensorView view() const;
};

// All throw Error naming the flag and the file: kIo or kInvalidArgument.

/// [N, V] or [B, S, V] of a float type. `dtype` is what --dtype says; empty =
/// what the file says, which does not tell bf16 (<u2).
HostTensor read_logits(const std::string& flag, const std::string& file,
                       const std::string& dtype);

/// Ids of int32 or int64.
HostTensor read_ids(const std::string& flag, const std::string& file);

/// fp32, per row.
HostTensor read_floats(const std::string& flag, const std::string& file);

/// On the device; a default view when not given.
tuning::DeviceTensor upload_host(runtime::Device& device,
                                 const HostTensor& tensor);

}  // namespace logpjit::cli
