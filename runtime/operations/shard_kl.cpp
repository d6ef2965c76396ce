// Vocab-parallel KL divergences of one rank.
#include <bit>

#include "runtime/operations/check.hpp"
#include "runtime/operations/kl.hpp"
#include "runtime/operations/shard.hpp"
#include "templates/common/layout.cuh"

namespace logpjit {
namespace runtime {
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
  ranks = place.shards->ranks();
  values_ = made.arguments;
  const bool segments = place.order == MergeOrder::kSegments;
  shard.begin = live.begin;
  shard.end = live.end;
  shard.slots = segments ? place.shards->most_segments() : 0;
  shard.digest = signature.digest();
  statistics = made.spec;
  statistics.pass = Pass::kShardStatistics;
  statistics.global_vocab = place.shards->vocab();
  statistics.segments = segments;
  if (live.width() == 0) statistics.vocab = 1;
  if (segments) statistics.vocab = statistics.global_vocab;
  merge = {.terms = Terms::kKl,
           .pass = Pass::kShardMerge,
           .vocab = statistics.global_vocab,
           .rows = made.spec.rows,
           .temperature = made.spec.temperature,
           .global_vocab = statistics.global_vocab,
           .segments = segments};
  if (rows == 0) return;
  engine_.program(statistics, nullptr);
  engine_.program(merge, nullptr);
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

}  // namespace runtime

ShardSizes shard_sizes(Runtime& runtime, const KlForward& call,
                       const ShardPlace& place) {
  const runtime::KlShard shard(runtime, call, place);
  return shard.sizes(shard.rows);
}

void shard_statistics(Runtime& runtime, const KlForward& call,
                      const ShardPlace& place, const ShardBuffers& buffers,
                      CUstream_st* stream) {
  const runtime::KlShard shard(runtime, call, place);
  runtime::check_buffers("shard_statistics", shard, buffers, false);
  if (shard.rows == 0) return;
  shard.launch_statistics({0, shard.rows}, buffers, stream);
}

void shard_merge(Runtime& runtime, const KlForward& call,
                 const ShardPlace& place, const ShardBuffers& buffers,
                 CUstream_st* stream) {
  const runtime::KlShard shard(runtime, call, place);
  runtime::check_buffers("shard_merge", shard, buffers, true);
  if (shard.rows == 0) return;
  shard.launch_merge({0, shard.rows}, buffers, stream);
}

}  // namespace logpjit
