// Vocab-parallel KL divergences of one rank.
#include <bit>

#include "runtime/operations/check.hpp"
#include "runtime/operations/kl.hpp"
#include "runtime/operations/shard.hpp"
#include "templates/common/layout.cuh"

namespace logpjit::runtime {
namespace {

constexpr std::string_view kOp = "shard_statistics";

KlForward with_columns(const KlForward& call, const ShardPlace& place,
                       VocabRange live) {
  KlForward made = call;
  made.inputs.student =
      check_columns(kOp, "student", call.inputs.student, place);
  made.inputs.teacher =
      check_columns(kOp, "teacher", call.inputs.teacher, place);
  made.inputs.vocab = live.width();
  return made;
}

std::int64_t bits_of(const Transform& transform) {
  if (transform.temperatures.given()) return -1;
  return std::bit_cast<std::int32_t>(transform.temperature);
}

ShardSignature signature_of(const KlValuesCall& made, const KlInputs& inputs,
                            const ShardPlace& place) {
  return {
      .rows = made.space.rows(),
      .terms = static_cast<std::int64_t>(made.spec.terms),
      .direction = static_cast<std::int64_t>(inputs.direction),
      .dtype = static_cast<std::int64_t>(inputs.student.dtype),
      .other_dtype = static_cast<std::int64_t>(inputs.teacher.dtype),
      .vocab = place.shards->vocab(),
      .ranges = digest_of(*place.shards),
      .order = static_cast<std::int64_t>(place.order),
      .row_map = inputs.row_index.given() ? 1 : 0,
      .temperature = bits_of(inputs.student_transform),
      .other_temperature = bits_of(inputs.teacher_transform),
      .softcap = std::bit_cast<std::int32_t>(inputs.student_transform.softcap),
      .other_softcap =
          std::bit_cast<std::int32_t>(inputs.teacher_transform.softcap)};
}

}  // namespace

KlShard::KlShard(Runtime& runtime, const KlForward& call,
                 const ShardPlace& place)
    : engine_(runtime.engine()) {
  const VocabRange live = check_place(kOp, place, call.inputs.vocab);
  check_options(kOp, call.options);
  const KlValuesCall made = check_kl_values(kOp, engine_.device().info().id,
                                            with_columns(call, place, live));
  check_alignment(kOp, made.spec, live, place);
  rows = made.space.rows();
  members = device::kKlMembers;
  signature = signature_of(made, call.inputs, place);
  values_ = made.arguments;
  set_kernels(made.spec, live, place);
  prepare(engine_);
}

void KlShard::launch_statistics(RowBlock block, const ShardBuffers& buffers,
                                CUstream_st* stream) const {
  const device::ShardKlStatisticsArguments arguments{
      .values = values_, .shard = of(block), .partials = buffers.partials};
  engine_.program(statistics, stream).launch(block.count, stream, arguments);
}

void KlShard::launch_merge(RowBlock block, const ShardBuffers& buffers,
                           CUstream_st* stream) const {
  const device::ShardKlMergeArguments arguments{
      .values = values_,
      .shard = of(block),
      .partials = buffers.partials,
      .ranks = ranks,
      .rank_bytes = static_cast<long long>(partial_bytes(block.count)),
      .disagreement = static_cast<unsigned*>(buffers.disagreement)};
  engine_.program(merge, stream)
      .launch(merge_blocks(block.count), stream, arguments);
}

}  // namespace logpjit::runtime
