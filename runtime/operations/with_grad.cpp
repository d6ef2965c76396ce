// Forward and gradient together: one launch where the row fits on chip, else
// two.
#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "runtime/launch_table.hpp"
#include "runtime/operations/check.hpp"
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

void run(Runtime& runtime, const RowWithGrad& call, runtime::CopiedLogits& copy,
         CUstream_st* stream) {
  runtime::Engine& engine = runtime.engine();
  const DeviceInfo& info = engine.device().info();
  if (!call.values.max.given() || !call.values.sum.given()) {
    runtime::refuse(kOp, "values", "max and sum must be given");
  }
  runtime::RowValuesCall made =
      runtime::check_values(kOp, info.id, call.values);
  device::RowFusedArguments arguments{};
  const Terms wanted = runtime::check_upstream(
      kOp, info.id, call.upstream, made.ids, made.space, arguments.upstream);
  arguments.gradient_rows = made.space.rows_argument(
      runtime::check_gradient(kOp, info.id, call.gradient, call.values.logits,
                              {{"ids", call.values.ids},
                               {"logp", call.values.logp},
                               {"max", call.values.max},
                               {"sum", call.values.sum}},
                              made.space));
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
  const CallOptions& options = call.values.options;
  runtime::checked_chunk(kOp, engine, made.spec, options);
  runtime::validate_rows(kOp, engine, call.values, made);
  copy.start({{"gradient", call.gradient.tensor},
              {"logp", call.values.logp},
              {"entropy", call.values.entropy},
              {"lse", call.values.lse},
              {"squares", call.values.squares},
              {"argmax", call.values.argmax},
              {"max", call.values.max},
              {"sum", call.values.sum}});
  if (made.space.rows() == 0) return;
  const bool alike =
      runtime::lie_alike(call.values.logits, call.gradient.tensor);
  const runtime::Program* program = nullptr;
  if (alike && !options.fallback && runtime::fits_on_chip(made.spec, info)) {
    program = engine.find_program(made.spec);
  }
  if (program == nullptr) return run_apart(runtime, call, stream);
  arguments.values = made.arguments;
  arguments.gradient = call.gradient.tensor.data;
  arguments.gradient_columns =
      call.values.logits.shape[call.values.logits.rank - 1];
  program->launch(made.space.rows(), stream, arguments);
}

}  // namespace

void forward_with_grad(Runtime& runtime, const RowWithGrad& call,
                       CUstream_st* stream) {
  runtime::CopiedLogits copy(kOp, runtime.engine(), call.values.options,
                             {{"logits", call.values.logits}},
                             call.values.vocab, stream);
  if (!copy.needed()) return run(runtime, call, copy, stream);
  RowWithGrad contiguous = call;
  contiguous.values.logits = copy.view(0);
  run(runtime, contiguous, copy, stream);
}

}  // namespace logpjit
