// One rank's columns of a gradient: no communication.
#include <fmt/format.h>

#include "logpjit/shard_operations.hpp"
#include "runtime/operations/check.hpp"
#include "runtime/operations/gradient.hpp"
#include "runtime/operations/shard.hpp"

namespace logpjit {
namespace {

constexpr std::string_view kOp = "shard_gradient";

std::int64_t width_of(const TensorView& tensor) {
  return tensor.rank > 0 ? tensor.shape[tensor.rank - 1] : 0;
}

void check_width(std::string_view name, const TensorView& logits,
                 const ShardPlace& place) {
  const std::int64_t held = place.shards->range(place.rank).width();
  if (width_of(logits) == held) return;
  runtime::refuse(kOp, name,
                  fmt::format("row length {} is not the {} columns of rank {}",
                              width_of(logits), held, place.rank));
}

void launch_rows(Runtime& runtime, runtime::RowGradientCall& made,
                 const ShardPlace& place, CUstream_st* stream) {
  const VocabRange live = place.shards->live(place.rank);
  made.spec.pass = Pass::kShardGradient;
  made.spec.global_vocab = place.shards->vocab();
  const device::ShardGradientArguments arguments{
      .values = made.arguments, .begin = live.begin, .end = live.end};
  if (made.space.rows() == 0) return;
  runtime.engine()
      .program(made.spec, stream)
      .launch(made.space.rows(), stream, arguments);
}

/// A rank that holds padding alone: zeros, whatever the other members say.
void clear_side(Runtime& runtime, const KlBackward& call,
                const TensorView& logits, const Gradient& gradient,
                const ShardPlace& place, CUstream_st* stream) {
  if (!gradient.tensor.given()) return;
  const RowBackward rows{.logits = logits,
                         .row_index = call.inputs.row_index,
                         .max = call.student_max,
                         .sum = call.student_sum,
                         .upstream = {.lse = call.upstream},
                         .gradient = gradient};
  runtime::RowGradientCall made = runtime::check_row_gradient(
      kOp, runtime.engine().device().info().id, rows);
  launch_rows(runtime, made, place, stream);
}

}  // namespace

void shard_gradient(Runtime& runtime, const RowBackward& call,
                    const ShardPlace& place, CUstream_st* stream) {
  const VocabRange live = runtime::check_place(kOp, place, call.vocab);
  runtime::check_options(kOp, call.options);
  check_width("logits", call.logits, place);
  if (width_of(call.logits) == 0) return;
  RowBackward local = call;
  local.vocab = live.width();
  runtime::RowGradientCall made = runtime::check_row_gradient(
      kOp, runtime.engine().device().info().id, local);
  if (has(made.spec.terms, Terms::kLogp) || live.width() == 0) {
    return launch_rows(runtime, made, place, stream);
  }
  backward(runtime, local, stream);
}

void shard_gradient(Runtime& runtime, const KlBackward& call,
                    const ShardPlace& place, CUstream_st* stream) {
  const VocabRange live = runtime::check_place(kOp, place, call.inputs.vocab);
  runtime::check_options(kOp, call.options);
  check_width("student", call.inputs.student, place);
  check_width("teacher", call.inputs.teacher, place);
  if (width_of(call.inputs.student) == 0) return;
  if (live.width() == 0) {
    clear_side(runtime, call, call.inputs.student, call.student_gradient, place,
               stream);
    return clear_side(runtime, call, call.inputs.teacher, call.teacher_gradient,
                      place, stream);
  }
  KlBackward local = call;
  local.inputs.vocab = live.width();
  kl_backward(runtime, local, stream);
}

}  // namespace logpjit
