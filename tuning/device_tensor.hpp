// Tensors the project owns on a device: inputs sent there, outputs fetched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "logpjit/tensor.hpp"
#include "runtime/device.hpp"

namespace logpjit::tuning {

/// A view and the memory behind it, which is freed with the object.
struct DeviceTensor {
  std::unique_ptr<runtime::Buffer> buffer;
  TensorView view;

  std::size_t bytes() const;
};

/// What an output holds before it is written: every byte, which is a NaN in
/// each float type and no id.
inline constexpr std::uint8_t kPoison = 0xff;

/// Contiguous, poisoned. At most TensorView::kMaxRank dimensions.
DeviceTensor poisoned_tensor(runtime::Device& device, DType dtype,
                             std::span<const std::int64_t> shape);

/// Contiguous, with these bytes (as many as the shape says).
DeviceTensor upload(runtime::Device& device, DType dtype,
                    std::span<const std::int64_t> shape,
                    std::span<const std::byte> bytes);

/// The buffer's bytes from the view's start on, as contiguous as it is. Waits
/// for the device.
std::vector<std::byte> download(runtime::Device& device,
                                const DeviceTensor& tensor);
std::vector<float> download_floats(runtime::Device& device,
                                   const DeviceTensor& tensor);

}  // namespace logpjit::tuning
