// Forward and gradient together: one launch where the row fits on chip, else
// two.
#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "runtime/launch_table.hpp"
#include "runtime/operations/check.hpp"
#include "runtime/operations/check_ids.hpp"
#include "runtime/operations/copied_logits.hpp"
#include "runtime/operations/forward.hpp"
#include "runtime/operations/gradient.hpp"
#include "runtime/operations/start.hpp"

namespace logpjit {
namespace {

constexpr std::string_view kOp = "forward_with_grad";

/// The same in two launches, bit for bit. What a call of its own would do once
/// more has been done.
void run_apart(Runtime& runtime, const RowWithGrad& call, CUstream_st* stream) {
  RowForward values = call.values;
  values.options.validate = false;
  forward(runtime, values, stream);
  backward(runtime,
           {.logits = call.values.logits,
            .ids = call.values.ids,
            .row_index = call.values.row_index,
            .vocab = call.values.vocab,
            .transform = call.values.transform,
            .max = call.values.max,
            .sum = call.values.sum,
            .entropy = call.values.entropy,
            .squares = call.values.squares,
            .upstream = call.upstream,
            .gradient = call.gradient,
            .options = values.options},
           stream);
}

struct FusedCall {
  explicit FusedCall(DeviceId device, const RowForward& call)
      : values(runtime::check_values(kOp, device, call)) {}

  runtime::RowValuesCall values;
  device::RowFusedArguments arguments{};
  bool alike = false;  ///< logits and gradient rows start alike
};

FusedCall check(DeviceId device, const RowWithGrad& call) {
  if (!call.values.max.given() || !call.values.sum.given()) {
    runtime::refuse(kOp, "values", "max and sum must be given");
  }
  FusedCall fused(device, call.values);
  runtime::RowValuesCall& made = fused.values;
  device::RowFusedArguments& arguments = fused.arguments;
  const Terms wanted = runtime::check_upstream(kOp, call.upstream, made.ids,
                                               made.space, arguments.upstream);
  arguments.gradient_rows = made.space.rows_argument(runtime::check_gradient(
      kOp, device, "gradient", call.gradient, call.values.logits, made.space));
  made.space.check_overlap();
  if (!has(made.spec.terms, wanted)) {
    runtime::refuse(kOp, "upstream",
                    "has a term whose value is not among the outputs");
  }
  made.spec.pass = Pass::kWithGrad;
  made.spec.store =
      call.gradient.accumulate ? GradStore::kAccumulate : GradStore::kWrite;
  made.spec.aligned =
      made.spec.aligned && runtime::is_aligned(call.gradient.tensor);
  made.spec.rows = made.space.map();
  arguments.values = made.arguments;
  arguments.gradient = call.gradient.tensor.data;
  arguments.gradient_columns =
      call.values.logits.shape[call.values.logits.rank - 1];
  fused.alike = runtime::lie_alike(call.values.logits, call.gradient.tensor);
  return fused;
}

/// `copy` is null where none may be needed.
void run(Runtime& runtime, const RowWithGrad& call, runtime::CopiedLogits* copy,
         CUstream_st* stream) {
  runtime::Engine& engine = runtime.engine();
  const DeviceInfo& info = engine.device().info();
  const FusedCall fused = check(info.id, call);
  const runtime::RowValuesCall& made = fused.values;
  const CallOptions& options = call.values.options;
  runtime::check_chunk(kOp, options);
  runtime::validate_rows(kOp, engine.device(), call.values, made);
  if (copy != nullptr) {
    copy->start({{"gradient", call.gradient.tensor},
                 {"logp", call.values.logp},
                 {"entropy", call.values.entropy},
                 {"lse", call.values.lse},
                 {"squares", call.values.squares},
                 {"argmax", call.values.argmax},
                 {"max", call.values.max},
                 {"sum", call.values.sum}});
  }
  if (made.space.rows() == 0) return;
  const runtime::Program* program = nullptr;
  if (fused.alike && !options.fallback) {
    program = engine.prepared_program(made.spec);
    if (program == nullptr && runtime::fits_on_chip(made.spec, info)) {
      program = engine.find_program(made.spec, stream);
    }
  }
  if (program == nullptr) return run_apart(runtime, call, stream);
  program->launch(made.space.rows(), stream, fused.arguments);
}

}  // namespace

void forward_with_grad(Runtime& runtime, const RowWithGrad& call,
                       CUstream_st* stream) {
  if (!call.values.options.copy_strided) {
    return run(runtime, call, nullptr, stream);
  }
  runtime::CopiedLogits copy(kOp, runtime.engine(), call.values.options,
                             {{"logits", call.values.logits}},
                             call.values.vocab, stream);
  if (!copy.needed()) return run(runtime, call, nullptr, stream);
  RowWithGrad contiguous = call;
  contiguous.values.logits = copy.view(0);
  run(runtime, contiguous, &copy, stream);
}

void launch(const Kernel& kernel, const RowWithGrad& call,
            CUstream_st* stream) {
  const runtime::ProgramSource source(kernel);
  const FusedCall fused = check(source.device().info().id, call);
  if (!fused.alike) {
    runtime::refuse(kOp, "gradient",
                    "its rows must start at the logits' place within 16 bytes; "
                    "forward_with_grad takes any");
  }
  const runtime::RowValuesCall& made = fused.values;
  const runtime::Program* program =
      source.held(kOp, made.spec, call.values.options);
  if (made.space.rows() == 0) return;
  program->launch(made.space.rows(), stream, fused.arguments);
}

}  // namespace logpjit
