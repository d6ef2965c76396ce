// Running a case's gradients of row values (logp, entropy) on a device.
#include "tuning/case_gradient.hpp"

#include <algorithm>
#include <cmath>

#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/case_calls.hpp"
#include "tuning/case_inputs.hpp"
#include "tuning/case_shards.hpp"
#include "tuning/gradient_checks.hpp"

namespace logpjit::tuning {
namespace {

/// Upstream gradients on the device; absent ones have no buffer.
struct UpstreamInputs {
  DeviceTensor logp;
  DeviceTensor entropy;

  logpjit::Upstream views() const {
    return {.logp = logp.view, .entropy = entropy.view};
  }
};

/// What the forward saves, and the fused call's copies of it.
struct Saved {
  DeviceTensor max;
  DeviceTensor sum;
  DeviceTensor logp;
  DeviceTensor entropy;
};

const GradPattern* logp_pattern(const Case& one) {
  for (const char* name : {"grad_out", "grad_logp"}) {
    const auto found = one.gradients.find(name);
    if (found != one.gradients.end()) return &found->second;
  }
  return nullptr;
}

/// The pattern's storage with the view the case describes, or a contiguous one
/// of `shape`.
DeviceTensor upload_grad(runtime::Device& device, const GradPattern& pattern,
                         const std::vector<std::int64_t>& shape) {
  const std::int64_t count[] = {
      static_cast<std::int64_t>(pattern.storage.size())};
  DeviceTensor tensor = upload_floats(device, pattern.storage, count);
  const bool plain = pattern.strides == std::vector<std::int64_t>{1};
  const auto& view_shape = plain ? shape : pattern.shape;
  tensor.view.rank = static_cast<int>(view_shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = view_shape.size(); d-- > 0;) {
    tensor.view.shape[d] = view_shape[d];
    tensor.view.strides[d] = plain ? stride : pattern.strides[d];
    stride *= view_shape[d];
  }
  tensor.view.data = static_cast<float*>(tensor.view.data) + pattern.offset;
  return tensor;
}

UpstreamInputs make_upstream(runtime::Device& device, const Case& one) {
  UpstreamInputs inputs;
  if (const GradPattern* logp = logp_pattern(one)) {
    inputs.logp = upload_grad(device, *logp, row_shape(one, one.ids_per_row));
  }
  const auto entropy = one.gradients.find("grad_entropy");
  if (entropy != one.gradients.end()) {
    inputs.entropy = upload_grad(device, entropy->second, row_shape(one));
  }
  return inputs;
}

Saved make_saved(runtime::Device& device, const Case& one) {
  return {
      poisoned_tensor(device, DType::kFp32, row_shape(one)),
      poisoned_tensor(device, DType::kFp32, row_shape(one)),
      poisoned_tensor(device, DType::kFp32, row_shape(one, one.ids_per_row)),
      poisoned_tensor(device, DType::kFp32, row_shape(one))};
}

RowForward saving_call(const RowInputs& inputs, const CaseVariant& variant,
                       const UpstreamInputs& upstream, const Saved& saved) {
  RowForward call = forward_call(inputs, variant);
  call.max = saved.max.view;
  call.sum = saved.sum.view;
  if (upstream.logp.view.given()) call.logp = saved.logp.view;
  if (upstream.entropy.view.given()) call.entropy = saved.entropy.view;
  return call;
}

RowBackward backward_call(const RowForward& values,
                          const logpjit::Upstream& upstream,
                          const DeviceTensor& gradient) {
  RowBackward call;
  call.logits = values.logits;
  call.ids = values.ids;
  call.row_index = values.row_index;
  call.transform = values.transform;
  call.max = values.max;
  call.sum = values.sum;
  if (upstream.entropy.given()) call.entropy = values.entropy;
  call.upstream = upstream;
  call.gradient.tensor = gradient.view;
  return call;
}

GradientReference make_reference(const Case& one, const CaseVariant& variant,
                                 const Upstream& upstream) {
  const Problem problem = stored_problem(one, variant);
  const std::int64_t width = one.ids_per_row;
  GradientReference reference{"dlogits", variant.dtype, {}, {}};
  reference.row = [problem, upstream](std::int64_t row) {
    return reference_gradient(problem, upstream, row);
  };
  reference.scale = [upstream, width](std::int64_t row) {
    double scale = 0;
    for (std::int64_t k = 0; k < width && !upstream.logp.empty(); ++k) {
      scale +=
          std::fabs(upstream.logp[static_cast<std::size_t>(row * width + k)]);
    }
    if (!upstream.entropy.empty()) {
      scale += std::fabs(upstream.entropy[static_cast<std::size_t>(row)]);
    }
    return std::max(scale, 1.0);
  };
  return reference;
}

/// The gradients of single outputs, where the case has numbers for them.
void run_single_terms(Runtime& runtime, const Case& one,
                      const RowForward& values, const UpstreamInputs& upstream,
                      Findings& findings) {
  runtime::Device& device = runtime.engine().device();
  const std::pair<const char*, logpjit::Upstream> terms[] = {
      {"dlogits_logp", {.logp = upstream.logp.view}},
      {"dlogits_entropy", {.entropy = upstream.entropy.view}}};
  for (const auto& [name, views] : terms) {
    if (!one.expected.gradients.contains(name)) continue;
    const DeviceTensor gradient =
        poisoned_tensor(device, values.logits.dtype, one.shape);
    backward_cut(runtime, backward_call(values, views, gradient), one.shards);
    check_named_gradient(one, name, GradientRows(device, gradient), findings);
  }
}

void run_variant(Runtime& runtime, const Case& one, const CaseVariant& variant,
                 Findings& findings) {
  runtime::Device& device = runtime.engine().device();
  const RowInputs inputs = make_row_inputs(device, one, variant);
  const UpstreamInputs upstream = make_upstream(device, one);
  const auto before = watched_bytes(device, inputs.logits);
  const Saved saved = make_saved(device, one);
  const RowForward values = saving_call(inputs, variant, upstream, saved);
  const DeviceTensor gradient =
      poisoned_tensor(device, variant.dtype, one.shape);
  forward_cut(runtime, values, one.shards);
  const RowBackward call = backward_call(values, upstream.views(), gradient);
  backward_cut(runtime, call, one.shards);
  const GradientRows rows(device, gradient);
  check_expected_gradient(one, rows, findings);
  check_gradient_reference(
      one, rows, make_reference(one, variant, one.upstream()), findings);
  run_single_terms(runtime, one, values, upstream, findings);

  const DeviceTensor again = poisoned_tensor(device, variant.dtype, one.shape);
  RowBackward repeated = call;
  repeated.gradient.tensor = again.view;
  backward_cut(runtime, repeated, one.shards);
  check_same_gradient(one, rows, GradientRows(device, again), "two backwards",
                      findings);
  if (one.shards.empty()) {
    device.fill(again.view.data, kPoison, again.bytes());
    forward_with_grad(runtime, {.values = values,
                                .upstream = upstream.views(),
                                .gradient = {.tensor = again.view}});
    check_same_gradient(one, rows, GradientRows(device, again),
                        "backward and forward_with_grad", findings);
  }
  if (watched_bytes(device, inputs.logits) != before) {
    findings.add("the logits were written");
  }
}

}  // namespace

bool asks_gradient(const Case& one) {
  return one.wants_gradient() && !one.teacher;
}

void run_gradient(Runtime& runtime, const Case& one, Findings& findings) {
  for (const CaseVariant& variant : variants_of(one)) {
    run_variant(runtime, one, variant, findings);
  }
}

}  // namespace logpjit::tuning
