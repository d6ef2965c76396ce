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

/// A value saved by the forward: fp32 per row, contiguous. Where it is not
/// read it is an input all the same, which the gradient may not lie over.
const float* saved(const Named& input, bool wanted, RowSpace& space) {
  if (wanted) return space.read_floats(input);
  if (input.tensor.given()) space.note_read(input);
  return nullptr;
}

}  // namespace

namespace runtime {

RowGradientCall check_row_gradient(std::string_view op, DeviceId device,
                                   const RowBackward& call) {
  check_matrix(op, device, {"logits", call.logits});
  RowGradientCall made(op, device, {"logits", call.logits}, call.row_index);
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
  const IdsShape ids =
      check_ids(op, call.ids, call.upstream.logp.given(), space, arguments.ids);
  spec.ids = ids.dtype;
  spec.many_ids = ids.per_row > 1;
  arguments.ids_per_row = ids.per_row;
  check_transform(op, call.transform, space, spec, arguments.transform);
  spec.terms =
      check_upstream(op, call.upstream, ids, space, arguments.upstream);
  arguments.max = space.read_floats({"max", call.max});
  arguments.sum = space.read_floats({"sum", call.sum});
  arguments.entropy =
      saved({"entropy", call.entropy}, has(spec.terms, Terms::kEntropy), space);
  arguments.squares =
      saved({"squares", call.squares}, has(spec.terms, Terms::kSquares), space);
  arguments.gradient = call.gradient.tensor.data;
  arguments.gradient_rows = space.rows_argument(check_gradient(
      op, device, "gradient", call.gradient, call.logits, space));
  space.check_overlap();
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
  runtime::check_chunk(kOp, call.options);
  runtime::validate_rows(kOp, device, call, made);
  if (copy != nullptr) copy->start({{"gradient", call.gradient.tensor}});
  runtime::start(kOp, source, made.spec, call.options, made.space.rows(),
                 stream, made.arguments);
}

}  // namespace

void backward(Runtime& runtime, const RowBackward& call, CUstream_st* stream) {
  const runtime::ProgramSource source(runtime.engine());
  if (!call.options.copy_strided) return run(source, call, nullptr, stream);
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
