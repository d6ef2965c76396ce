// Tensors the project owns on a device: inputs sent there, outputs fetched.
#include "tuning/device_tensor.hpp"

#include <algorithm>
#include <cstring>

namespace logpjit::tuning {
namespace {

DeviceTensor allocate(runtime::Device& device, DType dtype,
                      std::span<const std::int64_t> shape) {
  DeviceTensor tensor;
  tensor.view.dtype = dtype;
  tensor.view.rank = static_cast<int>(shape.size());
  tensor.view.device = device.info().id;
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    tensor.view.shape[d] = shape[d];
    tensor.view.strides[d] = stride;
    stride *= shape[d];
  }
  // An empty tensor has an address too.
  tensor.buffer = device.allocate(std::max<std::size_t>(tensor.bytes(), 1));
  tensor.view.data = tensor.buffer->data();
  return tensor;
}

}  // namespace

std::size_t DeviceTensor::bytes() const {
  return static_cast<std::size_t>(view.leading()) * size_of(view.dtype);
}

DeviceTensor poisoned_tensor(runtime::Device& device, DType dtype,
                             std::span<const std::int64_t> shape) {
  DeviceTensor tensor = allocate(device, dtype, shape);
  device.fill(tensor.view.data, kPoison, tensor.buffer->size());
  return tensor;
}

DeviceTensor upload(runtime::Device& device, DType dtype,
                    std::span<const std::int64_t> shape,
                    std::span<const std::byte> bytes) {
  DeviceTensor tensor = allocate(device, dtype, shape);
  if (!bytes.empty()) {
    device.copy_in(tensor.view.data, bytes.data(), bytes.size());
  }
  return tensor;
}

std::vector<std::byte> download(runtime::Device& device,
                                const DeviceTensor& tensor) {
  device.synchronize();
  std::vector<std::byte> bytes(tensor.bytes());
  if (!bytes.empty()) {
    device.copy_out(bytes.data(), tensor.view.data, bytes.size());
  }
  return bytes;
}

std::vector<float> download_floats(runtime::Device& device,
                                   const DeviceTensor& tensor) {
  const std::vector<std::byte> bytes = download(device, tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) {
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  }
  return values;
}

}  // namespace logpjit::tuning
