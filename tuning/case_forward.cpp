// Running a case's values (logp, entropy, log-sum-exp) on a device.
#include "tuning/case_forward.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/case_inputs.hpp"

namespace logpjit::tuning {
namespace {

/// math: logp within 1e-6 and 2 ULP; entropy 5e-7 of itself or 1e-6.
constexpr Tolerance kLogpTolerance{1e-6, 0x1p-22};
constexpr Tolerance kEntropyTolerance{1e-6, 5e-7};
/// Where inputs are compared with what was sent.
constexpr std::int64_t kMostWatchedBytes = std::int64_t{64} << 20;

struct Variant {
  DType dtype = DType::kFp32;
  DType id_dtype = DType::kInt64;
  std::vector<double> temperature;
};

using Outputs = std::vector<Output>;

bool asks(const Case& one, const char* name) {
  return one.asks(name) || one.expected.values.contains(name);
}

/// Everything one call needs, in device memory.
struct Inputs {
  DeviceTensor logits;
  DeviceTensor ids;
  DeviceTensor row_index;
  DeviceTensor temperatures;
};

Inputs make_inputs(runtime::Device& device, const Case& one,
                   const Variant& variant) {
  Inputs inputs;
  inputs.logits = upload_logits(device, one, one.logits, variant.dtype);
  if (one.has_ids) inputs.ids = upload_ids(device, one, variant.id_dtype);
  if (!one.row_mask.empty()) inputs.row_index = upload_row_index(device, one);
  if (variant.temperature.size() > 1) {
    inputs.temperatures =
        upload_floats(device, variant.temperature, row_shape(one));
  }
  return inputs;
}

/// The call without its outputs.
RowForward make_call(const Inputs& inputs, const Variant& variant) {
  RowForward call;
  call.logits = inputs.logits.view;
  call.ids = inputs.ids.view;
  call.row_index = inputs.row_index.view;
  call.transform.temperatures = inputs.temperatures.view;
  if (variant.temperature.size() == 1) {
    call.transform.temperature = static_cast<float>(variant.temperature[0]);
  }
  return call;
}

struct Wanted {
  const char* name;
  TensorView RowForward::*member;
  std::int64_t width;
};

std::vector<Wanted> wanted_outputs(const Case& one) {
  std::vector<Wanted> wanted;
  if (one.has_ids && (asks(one, "logp"))) {
    wanted.push_back({"logp", &RowForward::logp, one.ids_per_row});
  }
  if (asks(one, "entropy")) {
    wanted.push_back({"entropy", &RowForward::entropy, 1});
  }
  if (asks(one, "lse")) wanted.push_back({"lse", &RowForward::lse, 1});
  return wanted;
}

void check_time(const Case& one, double seconds, Findings& findings) {
  if (one.timeout_s == 0 || seconds <= one.timeout_s) return;
  findings.add(
      fmt::format("took {:.1f} s, more than {} s", seconds, one.timeout_s));
}

/// Storage as the device holds it, when it is small enough to watch.
std::vector<std::byte> watched(runtime::Device& device, const Case& one,
                               const DeviceTensor& logits) {
  if (device_bytes(one, logits.view.dtype) > kMostWatchedBytes) return {};
  std::vector<std::byte> bytes(logits.buffer->size());
  device.synchronize();
  device.copy_out(bytes.data(), logits.buffer->data(), bytes.size());
  return bytes;
}

Outputs run_once(Runtime& runtime, const Case& one, const Variant& variant,
                 Findings& findings) {
  runtime::Device& device = runtime.engine().device();
  const Inputs inputs = make_inputs(device, one, variant);
  const auto before = watched(device, one, inputs.logits);
  RowForward call = make_call(inputs, variant);
  std::vector<DeviceTensor> tensors;
  const auto wanted = wanted_outputs(one);
  for (const Wanted& output : wanted) {
    tensors.push_back(
        poisoned_tensor(device, DType::kFp32, row_shape(one, output.width)));
    call.*output.member = tensors.back().view;
  }
  forward(runtime, call);  // prepares, so that the second run is only a run
  device.synchronize();
  const auto start = std::chrono::steady_clock::now();
  forward(runtime, call);
  device.synchronize();
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  check_time(one, taken.count(), findings);
  if (watched(device, one, inputs.logits) != before) {
    findings.add("the logits were written");
  }
  Outputs outputs;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    outputs.push_back(
        {wanted[i].name, wanted[i].width, download_floats(device, tensors[i])});
  }
  return outputs;
}

void check_reference(const Case& one, const Variant& variant,
                     const Outputs& outputs, Findings& findings) {
  Problem problem = one.problem();
  problem.temperature.clear();
  for (double value : variant.temperature) {
    problem.temperature.push_back(static_cast<float>(value));
  }
  for (const std::int64_t row : reference_rows(one)) {
    const RowValues right = reference_values(problem, row);
    for (const Output& output : outputs) {
      const auto at = static_cast<std::size_t>(row * output.width);
      if (output.name == "logp") {
        for (std::size_t k = 0; k < right.logp.size(); ++k) {
          check_near(output.name, row, static_cast<std::int64_t>(k),
                     output.values[at + k], right.logp[k], kLogpTolerance,
                     findings);
        }
      } else {
        const bool entropy = output.name == "entropy";
        check_near(output.name, row, -1, output.values[at],
                   entropy ? right.entropy : right.lse,
                   entropy ? kEntropyTolerance : kLogpTolerance, findings);
      }
    }
  }
}

std::vector<Variant> variants_of(const Case& one) {
  std::vector<Variant> variants;
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

std::string pair_name(const Variant& one, const Variant& other) {
  return fmt::format("{} with {} ids and {} with {} ids", name(one.dtype),
                     name(one.id_dtype), name(other.dtype),
                     name(other.id_dtype));
}

/// The case's second set of numbers, at temperature 2.
void run_at_temperature_2(Runtime& runtime, const Case& one,
                          Findings& findings) {
  if (!one.expected.values.contains("logp_temperature_2")) return;
  const Variant variant{one.dtype, DType::kInt64, {2}};
  Outputs outputs = run_once(runtime, one, variant, findings);
  check_reference(one, variant, outputs, findings);
  outputs[0].name = "logp_temperature_2";
  check_expected(one, outputs[0], findings);
}

}  // namespace

bool asks_values(const Case& one) {
  return asks(one, "logp") || asks(one, "entropy") || asks(one, "lse");
}

void run_values(Runtime& runtime, const Case& one, Findings& findings) {
  const auto variants = variants_of(one);
  Outputs first;
  for (const Variant& variant : variants) {
    const Outputs outputs = run_once(runtime, one, variant, findings);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      check_written(outputs[i], findings);
      check_expected(one, outputs[i], findings);
      if (outputs[i].name == "logp") check_ignored(one, outputs[i], findings);
      if (!first.empty()) {
        check_same_bits(first[i], outputs[i], pair_name(variants[0], variant),
                        findings);
      }
    }
    check_reference(one, variant, outputs, findings);
    if (first.empty()) first = outputs;
  }
  run_at_temperature_2(runtime, one, findings);
}

}  // namespace logpjit::tuning
