// The gradient from saved statistics: checks, specification, arguments, launch.
#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "runtime/operations/check_ids.hpp"
#include "runtime/operations/copied_logits.hpp"
#include "runtime/operations/gradient.hpp"
#include "runtime/operations/start.hpp"

namespace logpjit {
namespace {

using runtime::Named;
using runtime::RowSpace;

constexpr std::string_view kOp = "backward";

/// A statistic saved by the forward: fp32 per row, contiguous.
const float* saved(DeviceId device, const Named& argument, bool wanted,
                   RowSpace& space) {
  if (!wanted) return nullptr;
  return space.add_floats(device, argument);
}

}  // namespace

namespace runtime {

RowGradientCall check_row_gradient(std::string_view op, DeviceId device,
                                   const RowBackward& call) {
  check_matrix(op, device, {"logits", call.logits});
  RowGradientCall made{.space =
                           RowSpace(op, device, call.logits, call.row_index)};
  RowSpace& space = made.space;
  KernelSpec& spec = made.spec;
  spec.pass = Pass::kBackward;
  spec.logits = call.logits.dtype;
  spec.vocab = check_vocab(op, call.logits, call.vocab);
  spec.aligned = is_aligned(call.logits) && is_aligned(call.gradient.tensor);
  spec.store =
      call.gradient.accumulate ? GradStore::kAccumulate : GradStore::kWrite;

  device::RowGradientArguments& arguments = made.arguments;
  arguments.logits = call.logits.data;
  arguments.rows = space.rows_argument(space.add_matrix("logits", call.logits));
  const IdsShape ids = check_ids(
      op, device, call.ids, call.upstream.logp.given(), space, arguments.ids);
  spec.ids = ids.dtype;
  spec.many_ids = ids.per_row > 1;
  arguments.ids_per_row = ids.per_row;
  check_transform(op, device, call.transform, space, spec, arguments.transform);
  spec.terms =
      check_upstream(op, device, call.upstream, ids, space, arguments.upstream);
  arguments.max = saved(device, {"max", call.max}, true, space);
  arguments.sum = saved(device, {"sum", call.sum}, true, space);
  arguments.entropy = saved(device, {"entropy", call.entropy},
                            has(spec.terms, Terms::kEntropy), space);
  arguments.squares = saved(device, {"squares", call.squares},
                            has(spec.terms, Terms::kSquares), space);
  arguments.gradient = call.gradient.tensor.data;
  arguments.gradient_rows = space.rows_argument(
      check_gradient(op, device, call.gradient, call.logits,
                     {{"ids", call.ids},
                      {"max", call.max},
                      {"sum", call.sum},
                      {"entropy", call.entropy},
                      {"squares", call.squares},
                      {"upstream.logp", call.upstream.logp},
                      {"upstream.entropy", call.upstream.entropy},
                      {"upstream.lse", call.upstream.lse},
                      {"upstream.squares", call.upstream.squares}},
                     space));
  arguments.gradient_columns = call.logits.shape[call.logits.rank - 1];
  arguments.row_count = space.rows();
  spec.rows = space.map();
  return made;
}

}  // namespace runtime

namespace {

/// `copy` is null for a kernel that is held.
void run(const runtime::ProgramSource& source, const RowBackward& call,
         runtime::CopiedLogits* copy, CUstream_st* stream) {
  runtime::Device& device = source.device();
  const runtime::RowGradientCall made =
      runtime::check_row_gradient(kOp, device.info().id, call);
  const std::int64_t chunk =
      runtime::checked_chunk(kOp, source, made.spec, call.options);
  runtime::validate_rows(kOp, device, call, made);
  if (copy != nullptr) copy->start({{"gradient", call.gradient.tensor}});
  runtime::start(kOp, source, made.spec, call.options, chunk, made.space.rows(),
                 stream, made.arguments);
}

}  // namespace

void backward(Runtime& runtime, const RowBackward& call, CUstream_st* stream) {
  const runtime::ProgramSource source(runtime.engine());
  runtime::CopiedLogits copy(kOp, runtime.engine(), call.options,
                             {{"logits", call.logits}}, call.vocab, stream);
  if (!copy.needed()) return run(source, call, nullptr, stream);
  RowBackward contiguous = call;
  contiguous.logits = copy.view(0);
  run(source, contiguous, &copy, stream);
}

void launch(const Kernel& kernel, const RowBackward& call,
            CUstream_st* stream) {
  run(runtime::ProgramSource(kernel), call, nullptr, stream);
}

}  // namespace logpjit
