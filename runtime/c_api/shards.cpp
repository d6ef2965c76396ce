// One rank's parts of the vocab-parallel operations through C.
#include "logpjit/logpjit_shards.h"

#include <fmt/format.h>

#include <vector>

#include "logpjit/error.hpp"
#include "logpjit/shard_operations.hpp"
#include "runtime/c_api/handles.hpp"
#include "runtime/c_api/status.hpp"
#include "runtime/c_api/structs.hpp"

struct logpjit_shards {
  logpjit::VocabShards shards;
};

namespace logpjit::c_api {
namespace {

std::vector<VocabRange> ranges_of(const char* call, const int64_t* begins,
                                  const int64_t* ends, int32_t ranks) {
  if (ranks < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: ranks: {} is below 1", call, ranks));
  }
  require(begins, call, "begins");
  require(ends, call, "ends");
  std::vector<VocabRange> ranges(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ranges[i] = {begins[i], ends[i]};
  }
  return ranges;
}

ShardPlace place_of(const char* call, const logpjit_shard_place* caller) {
  const logpjit_shard_place given = whole(call, caller);
  require(given.shards, call, "shards");
  if (given.order != LOGPJIT_MERGE_RANKS &&
      given.order != LOGPJIT_MERGE_SEGMENTS) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: order: {} is neither 0 nor 1", call, given.order));
  }
  return {.shards = &given.shards->shards,
          .rank = given.rank,
          .order = static_cast<MergeOrder>(given.order)};
}
static_assert(static_cast<int>(MergeOrder::kSegments) ==
              LOGPJIT_MERGE_SEGMENTS);

ShardBuffers buffers_of(const char* call, const logpjit_shard_buffers* caller) {
  const logpjit_shard_buffers given = whole(call, caller);
  return {.partials = given.partials,
          .words = given.words,
          .disagreement = given.disagreement};
}

RowForward converted(const char* call, const logpjit_row_forward* given) {
  return row_forward(call, whole(call, given));
}
RowBackward converted(const char* call, const logpjit_row_backward* given) {
  return row_backward(call, whole(call, given));
}
KlForward converted(const char* call, const logpjit_kl_forward_call* given) {
  return kl_forward(call, whole(call, given));
}
KlBackward converted(const char* call, const logpjit_kl_backward_call* given) {
  return kl_backward(call, whole(call, given));
}

/// Of RowForward and KlForward alike, as all below.
template <typename Call>
int sizes(logpjit_runtime* runtime, const Call* given,
          const logpjit_shard_place* place, logpjit_shard_sizes* made) {
  constexpr const char* kCall = "shard_sizes";
  return guarded([&] {
    require(runtime, kCall, "runtime");
    const ShardSizes found = shard_sizes(
        runtime->runtime, converted(kCall, given), place_of(kCall, place));
    fill(kCall, {.size = 0, .partials = found.partials, .words = found.words},
         made);
  });
}

template <typename Call>
int statistics(logpjit_runtime* runtime, const Call* given,
               const logpjit_shard_place* place,
               const logpjit_shard_buffers* buffers, CUstream_st* stream) {
  constexpr const char* kCall = "shard_statistics";
  return guarded([&] {
    require(runtime, kCall, "runtime");
    shard_statistics(runtime->runtime, converted(kCall, given),
                     place_of(kCall, place), buffers_of(kCall, buffers),
                     stream);
  });
}

template <typename Call>
int merge(logpjit_runtime* runtime, const Call* given,
          const logpjit_shard_place* place,
          const logpjit_shard_buffers* buffers, CUstream_st* stream) {
  constexpr const char* kCall = "shard_merge";
  return guarded([&] {
    require(runtime, kCall, "runtime");
    shard_merge(runtime->runtime, converted(kCall, given),
                place_of(kCall, place), buffers_of(kCall, buffers), stream);
  });
}

template <typename Call>
int gradient(logpjit_runtime* runtime, const Call* given,
             const logpjit_shard_place* place, CUstream_st* stream) {
  constexpr const char* kCall = "shard_gradient";
  return guarded([&] {
    require(runtime, kCall, "runtime");
    shard_gradient(runtime->runtime, converted(kCall, given),
                   place_of(kCall, place), stream);
  });
}

}  // namespace
}  // namespace logpjit::c_api

namespace c_api = logpjit::c_api;

int logpjit_shards_create(const int64_t* begins, const int64_t* ends,
                          int32_t ranks, int64_t vocab,
                          logpjit_shards** shards) {
  constexpr const char* kCall = "shards_create";
  if (shards != nullptr) *shards = nullptr;
  return c_api::guarded([&] {
    c_api::require(shards, kCall, "shards");
    *shards = new logpjit_shards{logpjit::VocabShards(
        c_api::ranges_of(kCall, begins, ends, ranks), vocab)};
  });
}

void logpjit_shards_destroy(logpjit_shards* shards) { delete shards; }

int logpjit_shard_row_sizes(logpjit_runtime* runtime,
                            const logpjit_row_forward* call,
                            const logpjit_shard_place* place,
                            logpjit_shard_sizes* sizes) {
  return c_api::sizes(runtime, call, place, sizes);
}

int logpjit_shard_row_statistics(logpjit_runtime* runtime,
                                 const logpjit_row_forward* call,
                                 const logpjit_shard_place* place,
                                 const logpjit_shard_buffers* buffers,
                                 logpjit_stream stream) {
  return c_api::statistics(runtime, call, place, buffers, stream);
}

int logpjit_shard_row_merge(logpjit_runtime* runtime,
                            const logpjit_row_forward* call,
                            const logpjit_shard_place* place,
                            const logpjit_shard_buffers* buffers,
                            logpjit_stream stream) {
  return c_api::merge(runtime, call, place, buffers, stream);
}

int logpjit_shard_row_gradient(logpjit_runtime* runtime,
                               const logpjit_row_backward* call,
                               const logpjit_shard_place* place,
                               logpjit_stream stream) {
  return c_api::gradient(runtime, call, place, stream);
}

int logpjit_shard_kl_sizes(logpjit_runtime* runtime,
                           const logpjit_kl_forward_call* call,
                           const logpjit_shard_place* place,
                           logpjit_shard_sizes* sizes) {
  return c_api::sizes(runtime, call, place, sizes);
}

int logpjit_shard_kl_statistics(logpjit_runtime* runtime,
                                const logpjit_kl_forward_call* call,
                                const logpjit_shard_place* place,
                                const logpjit_shard_buffers* buffers,
                                logpjit_stream stream) {
  return c_api::statistics(runtime, call, place, buffers, stream);
}

int logpjit_shard_kl_merge(logpjit_runtime* runtime,
                           const logpjit_kl_forward_call* call,
                           const logpjit_shard_place* place,
                           const logpjit_shard_buffers* buffers,
                           logpjit_stream stream) {
  return c_api::merge(runtime, call, place, buffers, stream);
}

int logpjit_shard_kl_gradient(logpjit_runtime* runtime,
                              const logpjit_kl_backward_call* call,
                              const logpjit_shard_place* place,
                              logpjit_stream stream) {
  return c_api::gradient(runtime, call, place, stream);
}
