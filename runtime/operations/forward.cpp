// Values and statistics: checks, specification, arguments, launch.
#include <fmt/format.h>

#include "logpjit/error.hpp"
#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "runtime/operations/check.hpp"
#include "runtime/operations/transform.hpp"

namespace logpjit {
namespace {

using runtime::Named;
using runtime::RowSpace;

constexpr std::string_view kOp = "forward";

struct TermOutput {
  Terms term;
  std::string_view name;
  const TensorView& tensor;
  DType dtype;
};

std::vector<TermOutput> term_outputs(const RowForward& call) {
  return {{Terms::kLogp, "logp", call.logp, DType::kFp32},
          {Terms::kEntropy, "entropy", call.entropy, DType::kFp32},
          {Terms::kLse, "lse", call.lse, DType::kFp32},
          {Terms::kSquares, "squares", call.squares, DType::kFp32},
          {Terms::kArgmax, "argmax", call.argmax, DType::kInt64},
          {Terms::kNone, "max", call.max, DType::kFp32},
          {Terms::kNone, "sum", call.sum, DType::kFp32}};
}

/// Terms of the outputs that are given, each checked.
Terms check_outputs(const RowForward& call, DeviceId device, RowSpace& space,
                    int id_dimensions) {
  Terms terms = Terms::kNone;
  std::vector<Named> outputs;
  for (const TermOutput& output : term_outputs(call)) {
    if (!output.tensor.given()) continue;
    const Named named{output.name, output.tensor};
    runtime::check_tensor(kOp, device, named);
    runtime::check_dtype(kOp, named, {output.dtype});
    runtime::check_contiguous(kOp, named);
    space.add_vector(output.name, output.tensor,
                     output.term == Terms::kLogp ? id_dimensions : 0);
    terms = terms | output.term;
    outputs.push_back(named);
  }
  if (outputs.empty()) runtime::refuse(kOp, "outputs", "none is given");
  runtime::check_no_overlap(kOp, outputs,
                            {{"logits", call.logits},
                             {"ids", call.ids},
                             {"row_index", call.row_index},
                             {"temperatures", call.transform.temperatures}});
  // Statistics alone ride on the cheapest term.
  return terms == Terms::kNone ? Terms::kLse : terms;
}

}  // namespace

void forward(Runtime& runtime, const RowForward& call, CUstream_st* stream) {
  runtime::Engine& engine = runtime.engine();
  const DeviceId device = engine.device().info().id;
  runtime::check_matrix(kOp, device, {"logits", call.logits});
  RowSpace space(kOp, device, call.logits, call.row_index);

  KernelSpec spec;
  spec.pass = Pass::kForward;
  spec.logits = call.logits.dtype;
  spec.vocab = runtime::check_vocab(kOp, call.logits, call.vocab);
  spec.aligned = runtime::is_aligned(call.logits);

  device::RowStatisticsArguments arguments{};
  arguments.logits = call.logits.data;
  arguments.rows =
      space.rows_argument(space.add_matrix("logits", call.logits));
  arguments.row_count = space.rows();
  arguments.ignore_id = call.ignore_id;

  const bool wants_ids = call.logp.given();
  runtime::IdsArgument ids =
      runtime::check_ids(kOp, device, call.ids, wants_ids, space);
  spec.ids = ids.dtype;
  spec.many_ids = ids.per_row > 1;
  arguments.ids = ids.vector;
  arguments.ids_per_row = ids.per_row;
  arguments.transform = runtime::check_transform(kOp, device, call.transform,
                                                 space, spec);
  spec.terms = check_outputs(call, device, space, ids.trailing);
  arguments.logp = static_cast<float*>(call.logp.data);
  arguments.entropy = static_cast<float*>(call.entropy.data);
  arguments.lse = static_cast<float*>(call.lse.data);
  arguments.squares = static_cast<float*>(call.squares.data);
  arguments.argmax = static_cast<long long*>(call.argmax.data);
  arguments.max = static_cast<float*>(call.max.data);
  arguments.sum = static_cast<float*>(call.sum.data);
  arguments.out_of_range =
      static_cast<unsigned long long*>(call.out_of_range.data);
  spec.rows = space.map();
  if (space.rows() == 0) return;
  engine.program(spec).launch(space.rows(), stream, arguments);
}

}  // namespace logpjit
