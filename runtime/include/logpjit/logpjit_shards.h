// The C interface to one rank's parts of the vocab-parallel operations; see
// shard_operations.hpp for shapes and meaning.
//
// Statistics write `partials` (and `words`); the caller gathers the partials of
// all ranks in rank order, and adds the words up as integers; the merge writes
// the outputs. Gradients need no communication. Calls hold the rank's columns
// as logits, of width 0 where it has none; all else is of the whole vocabulary.
#ifndef LOGPJIT_LOGPJIT_SHARDS_H
#define LOGPJIT_LOGPJIT_SHARDS_H

#include "logpjit/logpjit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which columns each rank owns. Immutable; shared between threads. */
typedef struct logpjit_shards logpjit_shards;

/* Rank r holds columns [begins[r], ends[r]); together they are a partition. The
   first `vocab` columns count, the rest is padding; 0 = all count. */
LOGPJIT_C_API int logpjit_shards_create(const int64_t* begins,
                                        const int64_t* ends, int32_t ranks,
                                        int64_t vocab, logpjit_shards** shards);
LOGPJIT_C_API void logpjit_shards_destroy(logpjit_shards* shards);

typedef enum logpjit_merge_order {
  LOGPJIT_MERGE_RANKS = 0,   /* one record a rank and row */
  LOGPJIT_MERGE_SEGMENTS = 1 /* the bits of the unsharded operation */
} logpjit_merge_order;

typedef struct logpjit_shard_place {
  uint64_t size;
  const logpjit_shards* shards;
  int32_t rank;
  int32_t order; /* logpjit_merge_order */
} logpjit_shard_place;

#define LOGPJIT_SHARD_PLACE_INIT \
  { .size = sizeof(logpjit_shard_place) }

/* Bytes of one rank's partials, and of the words (0: there are none). */
typedef struct logpjit_shard_sizes {
  uint64_t size;
  uint64_t partials;
  uint64_t words;
} logpjit_shard_sizes;

/* Device memory. The merge takes the partials of all ranks; `disagreement` is a
   32-bit word that becomes 1 + the first rank that did not make the same call.
   Statistics ignore it. */
typedef struct logpjit_shard_buffers {
  uint64_t size;
  void* partials;
  void* words;
  void* disagreement;
} logpjit_shard_buffers;

#define LOGPJIT_SHARD_BUFFERS_INIT \
  { .size = sizeof(logpjit_shard_buffers) }

LOGPJIT_C_API int logpjit_shard_row_sizes(logpjit_runtime* runtime,
                                          const logpjit_row_forward* call,
                                          const logpjit_shard_place* place,
                                          logpjit_shard_sizes* sizes);
LOGPJIT_C_API int logpjit_shard_row_statistics(
    logpjit_runtime* runtime, const logpjit_row_forward* call,
    const logpjit_shard_place* place, const logpjit_shard_buffers* buffers,
    logpjit_stream stream);
LOGPJIT_C_API int logpjit_shard_row_merge(logpjit_runtime* runtime,
                                          const logpjit_row_forward* call,
                                          const logpjit_shard_place* place,
                                          const logpjit_shard_buffers* buffers,
                                          logpjit_stream stream);
LOGPJIT_C_API int logpjit_shard_row_gradient(logpjit_runtime* runtime,
                                             const logpjit_row_backward* call,
                                             const logpjit_shard_place* place,
                                             logpjit_stream stream);

LOGPJIT_C_API int logpjit_shard_kl_sizes(logpjit_runtime* runtime,
                                         const logpjit_kl_forward_call* call,
                                         const logpjit_shard_place* place,
                                         logpjit_shard_sizes* sizes);
LOGPJIT_C_API int logpjit_shard_kl_statistics(
    logpjit_runtime* runtime, const logpjit_kl_forward_call* call,
    const logpjit_shard_place* place, const logpjit_shard_buffers* buffers,
    logpjit_stream stream);
LOGPJIT_C_API int logpjit_shard_kl_merge(logpjit_runtime* runtime,
                                         const logpjit_kl_forward_call* call,
                                         const logpjit_shard_place* place,
                                         const logpjit_shard_buffers* buffers,
                                         logpjit_stream stream);
LOGPJIT_C_API int logpjit_shard_kl_gradient(
    logpjit_runtime* runtime, const logpjit_kl_backward_call* call,
    const logpjit_shard_place* place, logpjit_stream stream);

#ifdef __cplusplus
}
#endif

#endif
