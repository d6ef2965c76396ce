// Random tensors for timing.
#include "tuning/bench_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <span>

#include "logpjit/error.hpp"

#include "tuning/numeric.hpp"

namespace logpjit::tuning {
namespace {

constexpr int kMostTensors = 16;
constexpr std::int64_t kTimesL2 = 4;
/// A prime, so that rows do not repeat with the block.
constexpr std::size_t kRandomElements = 1048573;
/// As many different values: drawing each element by itself takes longer than
/// all else that comes before a measurement.
constexpr std::size_t kRandomValues = std::size_t{1} << 16;
constexpr double kDeviation = 4;
constexpr std::int64_t kIdStep = 1000003;

std::vector<std::byte> random_block(DType dtype, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, kDeviation);
  std::vector<double> values(kRandomValues);
  for (double& value : values) value = normal(engine);
  std::vector<std::byte> table;
  narrow_row(values, dtype, table);
  const std::size_t size = size_of(dtype);
  std::vector<std::byte> bytes(kRandomElements * size);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    const std::size_t from = engine() % kRandomValues * size;
    std::copy_n(&table[from], size, &bytes[at]);
  }
  return bytes;
}

void fill_with(runtime::Device& device, const DeviceTensor& tensor,
               const std::vector<std::byte>& block) {
  auto* to = static_cast<std::byte*>(tensor.view.data);
  std::size_t done = std::min(block.size(), tensor.bytes());
  device.copy_in(to, block.data(), done);
  while (done < tensor.bytes()) {  // whole blocks, doubled on the device
    const std::size_t more = std::min(done, tensor.bytes() - done);
    device.copy(to + done, to, more, nullptr);
    done += more;
  }
}

}  // namespace

std::vector<DeviceTensor> random_logits(runtime::Device& device, DType dtype,
                                        std::int64_t rows, std::int64_t vocab,
                                        unsigned seed) {
  const std::int64_t shape[] = {rows, vocab};
  const std::int64_t bytes =
      rows * vocab * static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t wanted =
      (kTimesL2 * device.info().l2_bytes + bytes - 1) / bytes;
  const auto block = random_block(dtype, seed);
  std::vector<DeviceTensor> tensors;
  for (std::int64_t i = std::clamp<std::int64_t>(wanted, 1, kMostTensors);
       i > 0; --i) {
    tensors.push_back(upload(device, dtype, shape, {}));
    fill_with(device, tensors.back(), block);
  }
  return tensors;
}

std::int64_t SpreadIds::id(std::int64_t row, std::int64_t k) const {
  if (half_ignored && row % 2 == 1) return -100;
  const std::int64_t place = per_row == 1 ? row : row * per_row + k / 2;
  return place * kIdStep % vocab;
}

DeviceTensor spread_ids(runtime::Device& device, std::int64_t rows,
                        const SpreadIds& ids) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t k = 0; k < ids.per_row; ++k) {
      numbers.push_back(ids.id(row, k));
    }
  }
  std::vector<std::int64_t> shape{rows};
  if (ids.per_row > 1) shape.push_back(ids.per_row);
  return upload(device, DType::kInt64, shape,
                std::as_bytes(std::span<const std::int64_t>(numbers)));
}

void SequenceRows::check(std::int64_t rows) const {
  if (sequences == 0 || rows % sequences == 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("sequences: {} rows are not as many in each of {}",
                          rows, sequences));
}

TensorView SequenceRows::matrix(const TensorView& matrix) const {
  if (sequences == 0) return matrix;
  TensorView rows = matrix;
  const std::int64_t length = matrix.shape[0] / sequences;
  rows.rank = 3;
  rows.shape = {sequences, length - 1, matrix.shape[1]};
  rows.strides = {length * matrix.strides[0], matrix.strides[0], 1};
  return rows;
}

TensorView SequenceRows::vector(const TensorView& vector) const {
  if (sequences == 0) return vector;
  TensorView rows = vector;
  const std::int64_t length = vector.shape[0] / sequences;
  rows.rank = 2;
  rows.shape = {sequences, length};
  rows.strides = {length * vector.strides[0], vector.strides[0]};
  return rows;
}

DeviceTensor constant_rows(runtime::Device& device, std::int64_t rows,
                           double value) {
  std::vector<std::byte> bytes;
  narrow_row(std::vector<double>(static_cast<std::size_t>(rows), value),
             DType::kFp32, bytes);
  const std::int64_t shape[] = {rows};
  return upload(device, DType::kFp32, shape, bytes);
}

FetchedRows fetch_rows(runtime::Device& device, const DeviceTensor& logits,
                       std::int64_t rows, const SpreadIds& ids) {
  const std::int64_t vocab = logits.view.shape[1];
  FetchedRows fetched;
  fetched.bytes.resize(static_cast<std::size_t>(rows * vocab) *
                       size_of(logits.view.dtype));
  device.synchronize();
  device.copy_out(fetched.bytes.data(), logits.view.data, fetched.bytes.size());
  fetched.problem =
      problem_of(TensorView::contiguous(fetched.bytes.data(), logits.view.dtype,
                                        {rows, vocab}),
                 vocab);
  fetched.problem.ids_per_row = ids.per_row;
  fetched.problem.id = [ids](std::int64_t row, std::int64_t k) {
    return ids.id(row, k);
  };
  return fetched;
}

bool starts_aligned(const DeviceTensor& matrix) {
  constexpr std::int64_t kWordBytes = 16;
  const std::int64_t row_bytes =
      matrix.view.shape[1] *
      static_cast<std::int64_t>(size_of(matrix.view.dtype));
  return matrix.view.shape[0] <= 1 || row_bytes % kWordBytes == 0;
}

void poison_all(runtime::Device& device,
                std::span<const DeviceTensor> tensors) {
  for (const DeviceTensor& tensor : tensors) {
    device.fill(tensor.view.data, kPoison, tensor.bytes());
  }
}

void WatchedBytes::add_all(std::span<const DeviceTensor> tensors) {
  for (const DeviceTensor& tensor : tensors) {
    parts_.emplace_back(static_cast<std::byte*>(tensor.view.data),
                        tensor.bytes());
    bytes_ += tensor.bytes();
  }
}

void WatchedBytes::add_sampled_rows(const DeviceTensor& matrix) {
  constexpr std::int64_t kSampled = 16;
  const std::int64_t rows = matrix.view.shape[0];
  const std::int64_t sampled = std::min(rows, kSampled);
  const std::size_t row_bytes =
      matrix.bytes() /
      static_cast<std::size_t>(std::max<std::int64_t>(rows, 1));
  for (std::int64_t i = 0; i < sampled; ++i) {
    const std::int64_t row =
        i * (rows - 1) / std::max<std::int64_t>(sampled - 1, 1);
    parts_.emplace_back(static_cast<std::byte*>(matrix.view.data) +
                            static_cast<std::size_t>(row) * row_bytes,
                        row_bytes);
    bytes_ += row_bytes;
  }
}

void WatchedBytes::poison() {
  for (const std::span<std::byte> part : parts_) {
    device_.fill(part.data(), kPoison, part.size());
  }
}

std::span<const std::byte> WatchedBytes::fetch() {
  // Memory that the device reaches by itself, kept: fresh memory costs more
  // than the copies.
  if (!fetched_)
    fetched_ = device_.allocate_host(std::max<std::size_t>(bytes_, 1));
  auto* to = static_cast<std::byte*>(fetched_->data());
  device_.synchronize();
  for (const std::span<std::byte> part : parts_) {
    device_.copy(to, part.data(), part.size(), nullptr);
    to += part.size();
  }
  device_.synchronize();
  return {static_cast<const std::byte*>(fetched_->data()), bytes_};
}

}  // namespace logpjit::tuning
