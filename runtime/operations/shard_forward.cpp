// Vocab-parallel values and statistics of one rank: checks, specifications,
// arguments, launches.
#include <fmt/format.h>

#include <bit>

#include "logpjit/error.hpp"
#include "runtime/operations/check.hpp"
#include "runtime/operations/forward.hpp"
#include "runtime/operations/shard.hpp"
#include "templates/common/layout.cuh"

namespace logpjit::runtime {
namespace {

constexpr std::string_view kOp = "shard_statistics";

RowForward with_columns(const RowForward& call, const ShardPlace& place,
                        VocabRange live) {
  if (call.argmax.given()) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: argmax: is not available over shards; leave "
                            "it out",
                            kOp));
  }
  RowForward made = call;
  made.logits = check_columns(kOp, "logits", call.logits, place);
  made.vocab = live.width();
  return made;
}

ShardSignature signature_of(const RowValuesCall& made, const RowForward& call,
                            const ShardPlace& place) {
  const bool per_row = call.transform.temperatures.given();
  const bool ids = has(made.spec.terms, Terms::kLogp);
  return {.rows = made.space.rows(),
          .ids_per_row = ids ? made.ids.per_row : 0,
          .terms = static_cast<std::int64_t>(made.spec.terms),
          .dtype = static_cast<std::int64_t>(made.spec.logits),
          .vocab = place.shards->vocab(),
          .ranges = digest_of(*place.shards),
          .order = static_cast<std::int64_t>(place.order),
          .row_map = call.row_index.given() ? 1 : 0,
          .temperature =
              per_row ? -1
                      : std::bit_cast<std::int32_t>(call.transform.temperature),
          .softcap = std::bit_cast<std::int32_t>(call.transform.softcap)};
}

}  // namespace

RowShard::RowShard(Runtime& runtime, const RowForward& call,
                   const ShardPlace& place)
    : engine_(runtime.engine()) {
  const VocabRange live = check_place(kOp, place, call.vocab);
  check_options(kOp, call.options);
  RowValuesCall made = check_values(kOp, engine_.device().info().id,
                                    with_columns(call, place, live));
  made.spec.rows = made.space.map();
  check_alignment(kOp, made.spec, live, place);
  const bool ids = has(made.spec.terms, Terms::kLogp);
  const bool in_records = made.ids.per_row <= device::kMostPicked;
  rows = made.space.rows();
  members = device::state_members(static_cast<int>(made.spec.terms));
  words_per_row = ids && !in_records ? made.ids.per_row : 0;
  signature = signature_of(made, call, place);
  values_ = made.arguments;
  shard.picked = ids && in_records ? made.ids.per_row : 0;
  set_kernels(made.spec, live, place);
  merge.logits = DType::kFp32;
  merge.ids = made.spec.ids;
  merge.many_ids = made.spec.many_ids;
  prepare(engine_);
}

void RowShard::launch_statistics(RowBlock block, const ShardBuffers& buffers,
                                 CUstream_st* stream) const {
  const device::ShardStatisticsArguments arguments{
      .values = values_,
      .shard = of(block),
      .partials = buffers.partials,
      .words =
          words_per_row > 0 ? static_cast<unsigned*>(buffers.words) : nullptr};
  engine_.program(statistics, stream).launch(block.count, stream, arguments);
}

void RowShard::launch_merge(RowBlock block, const ShardBuffers& buffers,
                            CUstream_st* stream) const {
  const device::ShardMergeArguments arguments{
      .values = values_,
      .shard = of(block),
      .partials = buffers.partials,
      .ranks = ranks,
      .rank_bytes = static_cast<long long>(partial_bytes(block.count)),
      .words =
          words_per_row > 0 ? static_cast<unsigned*>(buffers.words) : nullptr,
      .disagreement = static_cast<unsigned*>(buffers.disagreement)};
  engine_.program(merge, stream)
      .launch(merge_blocks(block.count), stream, arguments);
}

}  // namespace logpjit::runtime
