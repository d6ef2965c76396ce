// Values and statistics: checks, specification, arguments, launch.
#include "runtime/operations/forward.hpp"

#include "runtime/operations/check.hpp"
#include "runtime/operations/check_ids.hpp"
#include "runtime/operations/copied_logits.hpp"
#include "runtime/operations/start.hpp"

namespace logpjit {
namespace {

using runtime::Named;
using runtime::RowSpace;

struct TermOutput {
  Terms term;
  std::string_view name;
  TensorView RowForward::*tensor;
  DType dtype;
};

constexpr TermOutput kTermOutputs[] = {
    {Terms::kLogp, "logp", &RowForward::logp, DType::kFp32},
    {Terms::kEntropy, "entropy", &RowForward::entropy, DType::kFp32},
    {Terms::kLse, "lse", &RowForward::lse, DType::kFp32},
    {Terms::kSquares, "squares", &RowForward::squares, DType::kFp32},
    {Terms::kArgmax, "argmax", &RowForward::argmax, DType::kInt64},
    {Terms::kNone, "max", &RowForward::max, DType::kFp32},
    {Terms::kNone, "sum", &RowForward::sum, DType::kFp32}};

/// One counter for all rows.
void check_counter(std::string_view op, DeviceId device, const Named& counter,
                   RowSpace& space) {
  if (!counter.tensor.given()) return;
  runtime::check_tensor(op, device, counter);
  runtime::check_dtype(op, counter, {DType::kInt64});
  if (counter.tensor.rank != 1 || counter.tensor.shape[0] != 1) {
    runtime::refuse(op, counter.name, "is not of shape [1]");
  }
  space.note_write(counter);
}

/// Terms of the outputs that are given, each checked.
Terms check_outputs(std::string_view op, const RowForward& call,
                    DeviceId device, RowSpace& space, int id_dimensions) {
  Terms terms = Terms::kNone;
  bool any = false;
  for (const TermOutput& output : kTermOutputs) {
    const Named named{output.name, call.*output.tensor};
    if (!named.tensor.given()) continue;
    space.write_contiguous(named, output.dtype,
                           output.term == Terms::kLogp ? id_dimensions : 0);
    terms = terms | output.term;
    any = true;
  }
  if (!any) runtime::refuse(op, "outputs", "none is given");
  check_counter(op, device, {"out_of_range", call.out_of_range}, space);
  space.check_overlap();
  // Statistics alone ride on the cheapest term.
  return terms == Terms::kNone ? Terms::kLse : terms;
}

void set_outputs(const RowForward& call,
                 device::RowStatisticsArguments& arguments) {
  const auto floats = [](const TensorView& tensor) {
    return static_cast<float*>(tensor.data);
  };
  arguments.logp = floats(call.logp);
  arguments.entropy = floats(call.entropy);
  arguments.lse = floats(call.lse);
  arguments.squares = floats(call.squares);
  arguments.argmax = static_cast<long long*>(call.argmax.data);
  arguments.max = floats(call.max);
  arguments.sum = floats(call.sum);
  arguments.out_of_range =
      static_cast<unsigned long long*>(call.out_of_range.data);
}

}  // namespace

namespace runtime {

RowValuesCall check_values(std::string_view op, DeviceId device,
                           const RowForward& call) {
  check_matrix(op, device, {"logits", call.logits});
  RowValuesCall made(op, device, {"logits", call.logits}, call.row_index);
  RowSpace& space = made.space;
  KernelSpec& spec = made.spec;
  spec.pass = Pass::kForward;
  spec.logits = call.logits.dtype;
  spec.vocab = check_vocab(op, call.logits, call.vocab);
  spec.aligned = is_aligned(call.logits);

  device::RowStatisticsArguments& arguments = made.arguments;
  arguments.logits = call.logits.data;
  arguments.rows = space.rows_argument(space.add_matrix("logits", call.logits));
  arguments.row_count = space.rows();
  arguments.ignore_id = call.ignore_id;
  made.ids = check_ids(op, call.ids, call.logp.given(), space, arguments.ids);
  spec.ids = made.ids.dtype;
  spec.many_ids = made.ids.per_row > 1;
  arguments.ids_per_row = made.ids.per_row;
  check_transform(op, call.transform, space, spec, arguments.transform);
  spec.terms = check_outputs(op, call, device, space, made.ids.trailing);
  set_outputs(call, arguments);
  return made;
}

}  // namespace runtime

namespace {

constexpr std::string_view kOp = "forward";

/// `copy` is null for a kernel that is held.
void run(const runtime::ProgramSource& source, const RowForward& call,
         runtime::CopiedLogits* copy, CUstream_st* stream) {
  runtime::Device& device = source.device();
  runtime::RowValuesCall made =
      runtime::check_values(kOp, device.info().id, call);
  made.spec.rows = made.space.map();
  runtime::check_chunk(kOp, call.options);
  runtime::validate_rows(kOp, device, call, made);
  if (copy != nullptr) {
    copy->start({{"logp", call.logp},
                 {"entropy", call.entropy},
                 {"lse", call.lse},
                 {"squares", call.squares},
                 {"argmax", call.argmax},
                 {"max", call.max},
                 {"sum", call.sum}});
  }
  runtime::start(kOp, source, made.spec, call.options, made.space.rows(),
                 stream, made.arguments);
}

}  // namespace

void forward(Runtime& runtime, const RowForward& call, CUstream_st* stream) {
  const runtime::ProgramSource source(runtime.engine());
  if (!call.options.copy_strided) return run(source, call, nullptr, stream);
  runtime::CopiedLogits copy(kOp, runtime.engine(), call.options,
                             {{"logits", call.logits}}, call.vocab, stream);
  if (!copy.needed()) return run(source, call, nullptr, stream);
  RowForward contiguous = call;
  contiguous.logits = copy.view(0);
  run(source, contiguous, &copy, stream);
}

void launch(const Kernel& kernel, const RowForward& call, CUstream_st* stream) {
  run(runtime::ProgramSource(kernel), call, nullptr, stream);
}

}  // namespace logpjit
