// A vocabulary over two hand-made shards of one device.
#include <logpjit/logpjit_shards.h>

#include "c_api_test.h"

enum { kCut = 11, kRanks = 2, kMostBytes = 4096 };

/* The rank's columns of a matrix, in place. */
static logpjit_tensor slice_of(const float* data, int rank) {
  logpjit_tensor made = matrix_of(rank == 0 ? data : data + kCut);
  made.shape[1] = rank == 0 ? kCut : kVocab - kCut;
  return made;
}

typedef struct gathered {
  _Alignas(16) unsigned char partials[kRanks * kMostBytes];
  int32_t disagreement;
} gathered;

static logpjit_shard_buffers buffers_at(gathered* all, size_t offset) {
  logpjit_shard_buffers made = LOGPJIT_SHARD_BUFFERS_INIT;
  made.partials = all->partials + offset;
  made.disagreement = &all->disagreement;
  return made;
}

static void test_rows(logpjit_runtime* runtime, logpjit_shard_place place) {
  const problem given = make_problem();
  float logp[kRows], entropy[kRows], max[kRows], sum[kRows];
  logpjit_row_forward call = LOGPJIT_ROW_FORWARD_INIT;
  call.ids = row_vector(given.ids, LOGPJIT_INT64);
  call.logp = row_vector(logp, LOGPJIT_FP32);
  call.entropy = row_vector(entropy, LOGPJIT_FP32);
  call.max = row_vector(max, LOGPJIT_FP32);
  call.sum = row_vector(sum, LOGPJIT_FP32);
  gathered all = {.disagreement = 0};
  logpjit_shard_sizes sizes = {.size = sizeof(sizes)};
  for (place.rank = 0; place.rank < kRanks; ++place.rank) {
    call.logits = slice_of(given.logits, place.rank);
    EXPECT_OK(logpjit_shard_row_sizes(runtime, &call, &place, &sizes));
    EXPECT(sizes.partials > 0 && sizes.partials <= kMostBytes);
    EXPECT(sizes.words == 0);
    const logpjit_shard_buffers own =
        buffers_at(&all, (size_t)place.rank * sizes.partials);
    EXPECT_OK(logpjit_shard_row_statistics(runtime, &call, &place, &own, NULL));
  }
  place.rank = 1;
  const logpjit_shard_buffers merged = buffers_at(&all, 0);
  EXPECT_OK(logpjit_shard_row_merge(runtime, &call, &place, &merged, NULL));
  EXPECT(all.disagreement == 0);
  const float ones[kRows] = {1, 1, 1};
  float gradient[kRows * kVocab];
  logpjit_row_backward backward = LOGPJIT_ROW_BACKWARD_INIT;
  backward.ids = call.ids;
  backward.max = call.max;
  backward.sum = call.sum;
  backward.upstream.logp = row_vector(ones, LOGPJIT_FP32);
  for (place.rank = 0; place.rank < kRanks; ++place.rank) {
    backward.logits = slice_of(given.logits, place.rank);
    backward.gradient.tensor = slice_of(gradient, place.rank);
    EXPECT_OK(logpjit_shard_row_gradient(runtime, &backward, &place, NULL));
  }
  for (int i = 0; i < kRows; ++i) {
    const float* row = given.logits + i * kVocab;
    EXPECT(near(logp[i], reference_logp(row, given.ids[i])));
    EXPECT(near(entropy[i], reference_entropy(row)));
    for (int j = 0; j < kVocab; ++j) {
      const double one_hot = j == given.ids[i] ? 1 : 0;
      const double right = given.ids[i] < 0 ? 0 : one_hot - softmax_at(row, j);
      EXPECT(near(gradient[i * kVocab + j], right));
    }
  }
}

static void test_kl(logpjit_runtime* runtime, logpjit_shard_place place) {
  const problem given = make_problem();
  float kl[kRows], stats[4][kRows];
  logpjit_kl_forward_call call = LOGPJIT_KL_FORWARD_INIT;
  call.kl = row_vector(kl, LOGPJIT_FP32);
  call.student_max = row_vector(stats[0], LOGPJIT_FP32);
  call.student_sum = row_vector(stats[1], LOGPJIT_FP32);
  call.teacher_max = row_vector(stats[2], LOGPJIT_FP32);
  call.teacher_sum = row_vector(stats[3], LOGPJIT_FP32);
  gathered all = {.disagreement = 0};
  logpjit_shard_sizes sizes = {.size = sizeof(sizes)};
  for (place.rank = 0; place.rank < kRanks; ++place.rank) {
    call.inputs.student = slice_of(given.logits, place.rank);
    call.inputs.teacher = slice_of(given.teacher, place.rank);
    EXPECT_OK(logpjit_shard_kl_sizes(runtime, &call, &place, &sizes));
    EXPECT(sizes.partials <= kMostBytes);
    const logpjit_shard_buffers own =
        buffers_at(&all, (size_t)place.rank * sizes.partials);
    EXPECT_OK(logpjit_shard_kl_statistics(runtime, &call, &place, &own, NULL));
  }
  place.rank = 1;
  const logpjit_shard_buffers merged = buffers_at(&all, 0);
  EXPECT_OK(logpjit_shard_kl_merge(runtime, &call, &place, &merged, NULL));
  const float ones[kRows] = {1, 1, 1};
  float gradient[kRows * kVocab];
  logpjit_kl_backward_call backward = LOGPJIT_KL_BACKWARD_INIT;
  backward.kl = call.kl;
  backward.student_max = call.student_max;
  backward.student_sum = call.student_sum;
  backward.teacher_max = call.teacher_max;
  backward.teacher_sum = call.teacher_sum;
  backward.upstream = row_vector(ones, LOGPJIT_FP32);
  for (place.rank = 0; place.rank < kRanks; ++place.rank) {
    backward.inputs.student = slice_of(given.logits, place.rank);
    backward.inputs.teacher = slice_of(given.teacher, place.rank);
    backward.student_gradient.tensor = slice_of(gradient, place.rank);
    EXPECT_OK(logpjit_shard_kl_gradient(runtime, &backward, &place, NULL));
  }
  for (int i = 0; i < kRows; ++i) {
    const float* student = given.logits + i * kVocab;
    const float* teacher = given.teacher + i * kVocab;
    EXPECT(near(kl[i], reference_kl(teacher, student)));
    for (int j = 0; j < kVocab; ++j) {
      EXPECT(near(gradient[i * kVocab + j],
                  softmax_at(student, j) - softmax_at(teacher, j)));
    }
  }
}

void test_shards(void) {
  const int wrong = LOGPJIT_INVALID_ARGUMENT;
  const int64_t begins[kRanks] = {0, kCut};
  const int64_t ends[kRanks] = {kCut, kVocab};
  const int64_t gapped[kRanks] = {kCut - 1, kVocab};
  logpjit_shards* shards = NULL;
  EXPECT_REFUSAL(logpjit_shards_create(begins, gapped, kRanks, 0, &shards),
                 wrong, "");
  EXPECT_REFUSAL(logpjit_shards_create(begins, ends, 0, 0, &shards), wrong,
                 "ranks");
  EXPECT_REFUSAL(logpjit_shards_create(NULL, ends, kRanks, 0, &shards), wrong,
                 "begins");
  EXPECT(shards == NULL);
  EXPECT_OK(logpjit_shards_create(begins, ends, kRanks, 0, &shards));

  logpjit_runtime* runtime = make_cpu_runtime();
  logpjit_shard_place place = LOGPJIT_SHARD_PLACE_INIT;
  place.shards = shards;
  test_rows(runtime, place);
  test_kl(runtime, place);

  logpjit_row_forward call = LOGPJIT_ROW_FORWARD_INIT;
  logpjit_shard_sizes sizes = {.size = sizeof(sizes)};
  place.order = 7;
  EXPECT_REFUSAL(logpjit_shard_row_sizes(runtime, &call, &place, &sizes), wrong,
                 "order");
  place.order = LOGPJIT_MERGE_RANKS;
  place.rank = kRanks;
  EXPECT_REFUSAL(logpjit_shard_row_sizes(runtime, &call, &place, &sizes), wrong,
                 "rank");
  EXPECT_REFUSAL(logpjit_shard_row_sizes(NULL, &call, &place, &sizes), wrong,
                 "runtime");
  logpjit_runtime_destroy(runtime);
  logpjit_shards_destroy(shards);
  logpjit_shards_destroy(NULL);
}
