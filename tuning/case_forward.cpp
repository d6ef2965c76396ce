// Running a case's values (logp, entropy, log-sum-exp) on a device.
#include "tuning/case_forward.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/case_calls.hpp"
#include "tuning/case_inputs.hpp"
#include "tuning/case_shards.hpp"

namespace logpjit::tuning {
namespace {

/// math: logp within 1e-6 and 2 ULP; entropy 5e-7 of itself or 1e-6.
constexpr Tolerance kLogpTolerance{1e-6, 0x1p-22};
constexpr Tolerance kEntropyTolerance{1e-6, 5e-7};

using Outputs = std::vector<Output>;

struct Wanted {
  const char* name;
  TensorView RowForward::*member;
  std::int64_t width;
};

std::vector<Wanted> wanted_outputs(const Case& one) {
  std::vector<Wanted> wanted;
  if (one.has_ids && asks_value(one, "logp")) {
    wanted.push_back({"logp", &RowForward::logp, one.ids_per_row});
  }
  if (asks_value(one, "entropy")) {
    wanted.push_back({"entropy", &RowForward::entropy, 1});
  }
  if (asks_value(one, "lse")) wanted.push_back({"lse", &RowForward::lse, 1});
  return wanted;
}

void check_time(const Case& one, double seconds, Findings& findings) {
  if (one.timeout_s == 0 || seconds <= one.timeout_s) return;
  findings.add(
      fmt::format("took {:.1f} s, more than {} s", seconds, one.timeout_s));
}

Outputs run_once(Runtime& runtime, const Case& one, const CaseVariant& variant,
                 Findings& findings) {
  runtime::Device& device = runtime.engine().device();
  const RowInputs inputs = make_row_inputs(device, one, variant);
  const auto before = watched_bytes(device, inputs.logits);
  RowForward call = forward_call(inputs, variant);
  std::vector<DeviceTensor> tensors;
  const auto wanted = wanted_outputs(one);
  for (const Wanted& output : wanted) {
    tensors.push_back(
        poisoned_tensor(device, DType::kFp32, row_shape(one, output.width)));
    call.*output.member = tensors.back().view;
  }
  // Prepares, so that the second run is only a run.
  forward_cut(runtime, call, one.shards);
  device.synchronize();
  const auto start = std::chrono::steady_clock::now();
  forward_cut(runtime, call, one.shards);
  device.synchronize();
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  check_time(one, taken.count(), findings);
  if (watched_bytes(device, inputs.logits) != before) {
    findings.add("the logits were written");
  }
  Outputs outputs;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    outputs.push_back(
        {wanted[i].name, wanted[i].width, download_floats(device, tensors[i])});
  }
  return outputs;
}

void check_reference(const Case& one, const CaseVariant& variant,
                     const Outputs& outputs, Findings& findings) {
  const Problem problem = stored_problem(one, variant);
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

/// The case's second set of numbers, at temperature 2.
void run_at_temperature_2(Runtime& runtime, const Case& one,
                          Findings& findings) {
  if (!one.expected.values.contains("logp_temperature_2")) return;
  const CaseVariant variant{one.dtype, DType::kInt64, {2}};
  Outputs outputs = run_once(runtime, one, variant, findings);
  check_reference(one, variant, outputs, findings);
  outputs[0].name = "logp_temperature_2";
  check_expected(one, outputs[0], findings);
}

}  // namespace

bool asks_values(const Case& one) {
  return asks_value(one, "logp") || asks_value(one, "entropy") ||
         asks_value(one, "lse");
}

void run_values(Runtime& runtime, const Case& one, Findings& findings) {
  const auto variants = variants_of(one);
  Outputs first;
  for (const CaseVariant& variant : variants) {
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
