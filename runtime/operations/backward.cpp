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
const float* saved(DeviceId device, Named argument, bool wanted,
                   RowSpace& space) {
  if (!wanted) return nullptr;
  runtime::check_tensor(kOp, device, argument);
  runtime::check_dtype(kOp, argument, {DType::kFp32});
  runtime::check_contiguous(kOp, argument);
  space.add_vector(argument.name, argument.tensor, 0);
  return static_cast<const float*>(argument.tensor.data);
}

/// A checked call.
struct Made {
  RowSpace space;
  KernelSpec spec{};
  device::RowGradientArguments arguments{};
};

Made check(DeviceId device, const RowBackward& call) {
  runtime::check_matrix(kOp, device, {"logits", call.logits});
  Made made{.space = RowSpace(kOp, device, call.logits, call.row_index)};
  RowSpace& space = made.space;
  KernelSpec& spec = made.spec;
  spec.pass = Pass::kBackward;
  spec.logits = call.logits.dtype;
  spec.vocab = runtime::check_vocab(kOp, call.logits, call.vocab);
  spec.aligned = runtime::is_aligned(call.logits) &&
                 runtime::is_aligned(call.gradient.tensor);
  spec.store =
      call.gradient.accumulate ? GradStore::kAccumulate : GradStore::kWrite;

  device::RowGradientArguments& arguments = made.arguments;
  arguments.logits = call.logits.data;
  arguments.rows = space.rows_argument(space.add_matrix("logits", call.logits));
  const runtime::IdsArgument ids = runtime::check_ids(
      kOp, device, call.ids, call.upstream.logp.given(), space);
  spec.ids = ids.dtype;
  spec.many_ids = ids.per_row > 1;
  arguments.ids = ids.vector;
  arguments.ids_per_row = ids.per_row;
  arguments.transform =
      runtime::check_transform(kOp, device, call.transform, space, spec);
  spec.terms = runtime::check_upstream(kOp, device, call.upstream, ids, space,
                                       arguments.upstream);
  arguments.max = saved(device, {"max", call.max}, true, space);
  arguments.sum = saved(device, {"sum", call.sum}, true, space);
  arguments.entropy = saved(device, {"entropy", call.entropy},
                            has(spec.terms, Terms::kEntropy), space);
  arguments.squares = saved(device, {"squares", call.squares},
                            has(spec.terms, Terms::kSquares), space);
  arguments.gradient = call.gradient.tensor.data;
  arguments.gradient_rows = space.rows_argument(
      runtime::check_gradient(kOp, device, call.gradient, call.logits,
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

/// `copy` is null for a kernel that is held.
void run(const runtime::ProgramSource& source, const RowBackward& call,
         runtime::CopiedLogits* copy, CUstream_st* stream) {
  runtime::Device& device = source.device();
  const Made made = check(device.info().id, call);
  const std::int64_t chunk =
      runtime::checked_chunk(kOp, source, made.spec, call.options);
  if (call.options.validate) {
    runtime::check_range(kOp, device, {"ids", call.ids}, made.spec.vocab,
                         call.ignore_id);
    runtime::check_range(kOp, device, {"row_index", call.row_index},
                         made.arguments.rows.limit, 0);
  }
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
