// What the runners of cases share: variants, inputs on a device, calls.
#include "tuning/case_calls.hpp"

#include <fmt/format.h>

#include "tuning/case_inputs.hpp"

namespace logpjit::tuning {
namespace {

constexpr std::size_t kMostWatchedBytes = std::size_t{64} << 20;

}  // namespace

std::vector<CaseVariant> variants_of(const Case& one) {
  std::vector<CaseVariant> variants;
  const auto dtypes =
      one.dtypes.empty() ? std::vector<DType>{one.dtype} : one.dtypes;
  const auto id_dtypes =
      one.id_dtypes.empty() ? std::vector<DType>{DType::kInt64} : one.id_dtypes;
  for (DType dtype : dtypes) {
    for (DType id_dtype : id_dtypes) {
      variants.push_back({dtype, id_dtype, one.temperature});
    }
  }
  return variants;
}

std::string pair_name(const CaseVariant& one, const CaseVariant& other) {
  return fmt::format("{} with {} ids and {} with {} ids", name(one.dtype),
                     name(one.id_dtype), name(other.dtype),
                     name(other.id_dtype));
}

bool asks_value(const Case& one, std::string_view name) {
  return one.asks(name) || one.expected.values.contains(std::string(name));
}

RowInputs make_row_inputs(runtime::Device& device, const Case& one,
                          const CaseVariant& variant) {
  RowInputs inputs;
  inputs.logits = upload_logits(device, one, one.logits, variant.dtype);
  if (one.has_ids) inputs.ids = upload_ids(device, one, variant.id_dtype);
  if (!one.row_mask.empty()) inputs.row_index = upload_row_index(device, one);
  if (variant.temperature.size() > 1) {
    inputs.temperatures =
        upload_floats(device, variant.temperature, row_shape(one));
  }
  return inputs;
}

logpjit::Transform transform_of(const CaseVariant& variant,
                                const DeviceTensor& temperatures) {
  logpjit::Transform transform;
  transform.temperatures = temperatures.view;
  if (variant.temperature.size() == 1) {
    transform.temperature = static_cast<float>(variant.temperature[0]);
  }
  return transform;
}

RowForward forward_call(const RowInputs& inputs, const CaseVariant& variant) {
  RowForward call;
  call.logits = inputs.logits.view;
  call.ids = inputs.ids.view;
  call.row_index = inputs.row_index.view;
  call.transform = transform_of(variant, inputs.temperatures);
  return call;
}

Problem stored_problem(const Case& one, const CaseVariant& variant) {
  Problem problem = one.problem();
  problem.temperature.clear();
  for (double value : variant.temperature) {
    problem.temperature.push_back(static_cast<float>(value));
  }
  return problem;
}

std::vector<std::byte> watched_bytes(runtime::Device& device,
                                     const DeviceTensor& tensor) {
  std::vector<std::byte> bytes;
  if (tensor.buffer->size() > kMostWatchedBytes) return bytes;
  bytes.resize(tensor.buffer->size());
  device.synchronize();
  device.copy_out(bytes.data(), tensor.buffer->data(), bytes.size());
  return bytes;
}

}  // namespace logpjit::tuning
