// Random problems, sent to a device and fetched back.
#include "tests/conformance/harness.hpp"

#include <cstring>
#include <map>

#include "logpjit/error.hpp"
#include "tuning/numeric.hpp"

namespace logpjit::tests {

std::unique_ptr<Runtime>& OnDevice::instance(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Runtime>> runtimes;
  return runtimes[name];
}

void OnDevice::SetUp() {
  std::unique_ptr<Runtime>& runtime = instance(GetParam());
  if (!runtime) {
    Options options = Options::from_environment();
    options.device = GetParam().substr(0, GetParam().find('+'));
    options.fallback =
        on_fallback() ? FallbackUse::kAlways : FallbackUse::kNever;
    try {
      runtime = std::make_unique<Runtime>(options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      GTEST_SKIP() << "no GPU: " << error.message();
    }
  }
  runtime_ = runtime.get();
  if (!on_cpu() && on_fallback() && !runtime::why_no_cuda_images().empty()) {
    GTEST_SKIP() << "no CUDA fallback: " << runtime::why_no_cuda_images();
  }
}

HostMatrix random_matrix(DType dtype, std::int64_t rows, std::int64_t columns,
                         double spread, std::uint32_t seed) {
  HostMatrix matrix{dtype, rows, columns, {}};
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, spread);
  matrix.values.resize(static_cast<std::size_t>(rows * columns));
  for (double& value : matrix.values) {
    value = tuning::rounded(normal(generator), dtype);
  }
  return matrix;
}

tuning::DeviceTensor send(runtime::Device& device, const HostMatrix& matrix,
                          Placement placement) {
  const std::int64_t stride =
      placement.row_stride == 0 ? matrix.columns : placement.row_stride;
  const std::int64_t total = placement.offset + stride * matrix.rows;
  const auto size = size_of(matrix.dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(total) * size,
                               std::byte{tuning::kPoison});
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t column = 0; column < matrix.columns; ++column) {
      const auto at =
          static_cast<std::size_t>(placement.offset + row * stride + column);
      tuning::narrow(
          matrix
              .values[static_cast<std::size_t>(row * matrix.columns + column)],
          matrix.dtype, bytes.data() + at * size);
    }
  }
  tuning::DeviceTensor tensor =
      tuning::upload(device, matrix.dtype, std::vector{total}, bytes);
  TensorView& view = tensor.view;
  view.data = static_cast<std::byte*>(view.data) +
              static_cast<std::size_t>(placement.offset) * size;
  view.rank = 2;
  view.shape = {matrix.rows, matrix.columns};
  view.strides = {stride, 1};
  return tensor;
}

tuning::DeviceTensor send(runtime::Device& device,
                          const std::vector<float>& values) {
  return tuning::upload(device, DType::kFp32,
                        std::vector{static_cast<std::int64_t>(values.size())},
                        std::as_bytes(std::span(values)));
}

tuning::DeviceTensor send_ids(runtime::Device& device,
                              const std::vector<std::int64_t>& ids,
                              std::int64_t per_row) {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(ids.size()) /
                                  per_row};
  if (per_row > 1) shape.push_back(per_row);
  return tuning::upload(device, DType::kInt64, shape,
                        std::as_bytes(std::span(ids)));
}

std::vector<double> fetch(runtime::Device& device,
                          const tuning::DeviceTensor& tensor) {
  const TensorView& view = tensor.view;
  const auto size = size_of(view.dtype);
  std::vector<std::byte> bytes(tensor.buffer->size());
  device.synchronize();
  device.copy_out(bytes.data(), tensor.buffer->data(), bytes.size());
  const std::byte* start =
      bytes.data() + (static_cast<std::byte*>(view.data) -
                      static_cast<std::byte*>(tensor.buffer->data()));
  std::vector<double> values;
  for (std::int64_t row = 0; row < view.shape[0]; ++row) {
    for (std::int64_t column = 0; column < view.shape[1]; ++column) {
      values.push_back(tuning::widen(
          start +
              static_cast<std::size_t>(row * view.strides[0] + column) * size,
          view.dtype));
    }
  }
  return values;
}

tuning::Problem problem_of(const HostMatrix& matrix) {
  tuning::Problem problem;
  problem.rows = matrix.rows;
  problem.logits = [&matrix](std::int64_t row, std::vector<double>& values) {
    const auto begin = matrix.values.begin() + row * matrix.columns;
    values.assign(begin, begin + matrix.columns);
  };
  return problem;
}

std::vector<std::int64_t> random_ids(std::int64_t count, std::int64_t vocab,
                                     std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int64_t> uniform(0, vocab - 1);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    ids.push_back(i % 7 == 3 ? (i % 2 == 0 ? -100 : vocab + 5)
                             : uniform(generator));
  }
  return ids;
}

std::vector<float> random_floats(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(normal(generator));
  return values;
}

Values poisoned_values(runtime::Device& device, std::int64_t rows,
                       std::int64_t ids_per_row) {
  const auto floats = [&] {
    return tuning::poisoned_tensor(device, DType::kFp32, std::vector{rows});
  };
  std::vector<std::int64_t> shape{rows};
  if (ids_per_row > 1) shape.push_back(ids_per_row);
  return {tuning::poisoned_tensor(device, DType::kFp32, shape),
          floats(),
          floats(),
          floats(),
          tuning::poisoned_tensor(device, DType::kInt64, std::vector{rows}),
          floats(),
          floats()};
}

std::vector<std::uint32_t> bits(runtime::Device& device,
                                const tuning::DeviceTensor& tensor) {
  const std::vector<float> floats = tuning::download_floats(device, tensor);
  std::vector<std::uint32_t> words(floats.size());
  std::memcpy(words.data(), floats.data(), floats.size() * sizeof(float));
  return words;
}

}  // namespace logpjit::tests
