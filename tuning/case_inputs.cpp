// A case's inputs in device memory, laid out as the case says.
#include "tuning/case_inputs.hpp"

#include <cstring>

#include "tuning/numeric.hpp"

namespace logpjit::tuning {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 20;

/// Gathers neighbouring bytes into large copies.
class RunWriter {
 public:
  RunWriter(runtime::Device& device, void* base)
      : device_(device), base_(static_cast<std::byte*>(base)) {}

  void put(std::int64_t offset, std::span<const std::byte> bytes) {
    const auto end = start_ + static_cast<std::int64_t>(pending_.size());
    if (offset != end || pending_.size() >= kChunkBytes) flush();
    if (pending_.empty()) start_ = offset;
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  }

  void flush() {
    if (pending_.empty()) return;
    device_.copy_in(base_ + start_, pending_.data(), pending_.size());
    pending_.clear();
  }

 private:
  runtime::Device& device_;
  std::byte* base_;
  std::int64_t start_ = 0;
  std::vector<std::byte> pending_;
};

std::int64_t row_offset(const Case& one, std::int64_t row) {
  const std::size_t rank = one.shape.size();
  if (rank == 2) return row * one.strides[0];
  return row / one.shape[1] * one.strides[0] +
         row % one.shape[1] * one.strides[1];
}

void write_row(RunWriter& writer, const Case& one, std::int64_t row,
               const std::vector<std::byte>& bytes, std::int64_t size) {
  const std::int64_t start = row_offset(one, row) * size;
  if (one.strides.back() == 1) return writer.put(start, bytes);
  const std::span<const std::byte> all(bytes);
  for (std::int64_t j = 0; j < one.columns(); ++j) {
    writer.put(start + j * one.strides.back() * size,
               all.subspan(static_cast<std::size_t>(j * size),
                           static_cast<std::size_t>(size)));
  }
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
std::vector<std::byte> id_bytes(const Case& one) {
  std::vector<T> ids;
  ids.reserve(static_cast<std::size_t>(one.rows() * one.ids_per_row));
  for (std::int64_t row = 0; row < one.rows(); ++row) {
    for (std::int64_t k = 0; k < one.ids_per_row; ++k) {
      ids.push_back(static_cast<T>(one.ids.at(row, k)));
    }
  }
  return bytes_of(ids);
}

}  // namespace

DeviceTensor upload_logits(runtime::Device& device, const Case& one,
                           const LogitsPattern& pattern, DType dtype) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t storage[] = {one.storage_elements()};
  DeviceTensor tensor;
  if (one.layout && one.layout->poison_outside) {
    tensor = poisoned_tensor(device, dtype, storage);
  } else {
    tensor = upload(device, dtype, storage, {});
  }
  tensor.view.data = static_cast<std::byte*>(tensor.view.data) +
                     (one.layout ? one.layout->offset * size : 0);
  tensor.view.rank = static_cast<int>(one.shape.size());
  std::copy(one.shape.begin(), one.shape.end(), tensor.view.shape.begin());
  std::copy(one.strides.begin(), one.strides.end(),
            tensor.view.strides.begin());
  RunWriter writer(device, tensor.view.data);
  std::vector<double> values;
  std::vector<std::byte> bytes;
  for (std::int64_t row = 0; row < one.rows(); ++row) {
    pattern.row(row, values);
    narrow_row(values, dtype, bytes);
    write_row(writer, one, row, bytes, size);
  }
  writer.flush();
  return tensor;
}

DeviceTensor upload_ids(runtime::Device& device, const Case& one, DType dtype) {
  const auto shape = row_shape(one, one.ids_per_row);
  return upload(device, dtype, shape,
                dtype == DType::kInt32 ? id_bytes<std::int32_t>(one)
                                       : id_bytes<std::int64_t>(one));
}

DeviceTensor upload_floats(runtime::Device& device,
                           const std::vector<double>& values,
                           std::span<const std::int64_t> shape) {
  std::vector<std::byte> bytes;
  narrow_row(values, DType::kFp32, bytes);
  return upload(device, DType::kFp32, shape, bytes);
}

DeviceTensor upload_row_index(runtime::Device& device, const Case& one) {
  std::vector<std::int64_t> index;
  index.reserve(one.row_mask.size());
  for (std::size_t row = 0; row < one.row_mask.size(); ++row) {
    index.push_back(one.row_mask[row] == 0 ? -1
                                           : static_cast<std::int64_t>(row));
  }
  const std::int64_t shape[] = {one.rows()};
  return upload(device, DType::kInt64, shape, bytes_of(index));
}

std::vector<std::int64_t> row_shape(const Case& one, std::int64_t trailing) {
  std::vector<std::int64_t> shape(one.shape.begin(), one.shape.end() - 1);
  if (!one.row_mask.empty()) shape = {one.rows()};
  if (trailing != 1) shape.push_back(trailing);
  return shape;
}

std::int64_t device_bytes(const Case& one, DType dtype) {
  constexpr std::int64_t kPerRow = 32;  // eight outputs of one row, at most
  constexpr std::int64_t kPerId = 12;   // the id and its value
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t dense = one.rows() * one.columns();
  // A gradient and its repetition; the teacher lies as the student does.
  const std::int64_t gradients = one.wants_gradient() ? 2 * dense : 0;
  const std::int64_t inputs = one.storage_elements() * (one.teacher ? 2 : 1);
  return (inputs + gradients) * size +
         one.rows() * (kPerRow + one.ids_per_row * kPerId);
}

}  // namespace logpjit::tuning
