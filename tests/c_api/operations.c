// Every operation against float64.
#include <math.h>

#include "c_api_test.h"

typedef struct values {
  float logp[kRows], entropy[kRows], lse[kRows], squares[kRows];
  float max[kRows], sum[kRows];
  int64_t argmax[kRows];
  int64_t out_of_range;
} values;

static logpjit_row_forward forward_call(const problem* given, values* out) {
  logpjit_row_forward call = LOGPJIT_ROW_FORWARD_INIT;
  call.logits = matrix_of(given->logits);
  call.ids = row_vector(given->ids, LOGPJIT_INT64);
  call.logp = row_vector(out->logp, LOGPJIT_FP32);
  call.entropy = row_vector(out->entropy, LOGPJIT_FP32);
  call.lse = row_vector(out->lse, LOGPJIT_FP32);
  call.squares = row_vector(out->squares, LOGPJIT_FP32);
  call.argmax = row_vector(out->argmax, LOGPJIT_INT64);
  call.max = row_vector(out->max, LOGPJIT_FP32);
  call.sum = row_vector(out->sum, LOGPJIT_FP32);
  return call;
}

static void expect_values(const problem* given, const values* out) {
  for (int i = 0; i < kRows; ++i) {
    const float* row = given->logits + i * kVocab;
    double squares = 0;
    int64_t argmax = 0;
    for (int j = 0; j < kVocab; ++j) {
      squares += softmax_at(row, j) * softmax_at(row, j);
      if (row[j] > row[argmax]) argmax = j;
    }
    EXPECT(near(out->logp[i], reference_logp(row, given->ids[i])));
    EXPECT(near(out->entropy[i], reference_entropy(row)));
    EXPECT(near(out->lse[i], (double)row[0] - reference_logp(row, 0)));
    EXPECT(near(out->squares[i], squares));
    EXPECT(out->argmax[i] == argmax);
    EXPECT(near((float)(out->max[i] + logf(out->sum[i])),
                (double)row[0] - reference_logp(row, 0)));
  }
}

/* d(sum of logp + 2 entropy) / dlogits. */
static void expect_row_gradient(const problem* given, const float* gradient) {
  for (int i = 0; i < kRows; ++i) {
    const float* row = given->logits + i * kVocab;
    const double h = reference_entropy(row);
    for (int j = 0; j < kVocab; ++j) {
      const double p = softmax_at(row, j);
      double right = -2 * p * (log(p) + h);
      if (given->ids[i] >= 0) right += (j == given->ids[i] ? 1 : 0) - p;
      EXPECT(near(gradient[i * kVocab + j], right));
    }
  }
}

static void test_rows(logpjit_runtime* runtime) {
  const problem given = make_problem();
  values out = {.out_of_range = 0};
  logpjit_row_forward forward = forward_call(&given, &out);
  EXPECT_OK(logpjit_forward(runtime, &forward, NULL));
  expect_values(&given, &out);

  const float ones[kRows] = {1, 1, 1};
  const float twos[kRows] = {2, 2, 2};
  float gradient[kRows * kVocab];
  logpjit_row_backward backward = LOGPJIT_ROW_BACKWARD_INIT;
  backward.logits = forward.logits;
  backward.ids = forward.ids;
  backward.max = forward.max;
  backward.sum = forward.sum;
  backward.entropy = forward.entropy;
  backward.upstream.logp = row_vector(ones, LOGPJIT_FP32);
  backward.upstream.entropy = row_vector(twos, LOGPJIT_FP32);
  backward.gradient.tensor = matrix_of(gradient);
  EXPECT_OK(logpjit_backward(runtime, &backward, NULL));
  expect_row_gradient(&given, gradient);

  float together[kRows * kVocab];
  logpjit_row_gradient wanted = LOGPJIT_ROW_GRADIENT_INIT;
  wanted.upstream = backward.upstream;
  wanted.gradient.tensor = matrix_of(together);
  EXPECT_OK(logpjit_forward_with_grad(runtime, &forward, &wanted, NULL));
  expect_row_gradient(&given, together);

  // Added to what is there: twice the gradient, halved.
  backward.gradient.accumulate = 1;
  EXPECT_OK(logpjit_backward(runtime, &backward, NULL));
  for (int i = 0; i < kRows * kVocab; ++i) gradient[i] /= 2;
  expect_row_gradient(&given, gradient);

  // Over the logits, which are a copy.
  problem spent = given;
  backward.logits = matrix_of(spent.logits);
  backward.gradient =
      (logpjit_gradient){.tensor = matrix_of(spent.logits), .in_place = 1};
  EXPECT_OK(logpjit_backward(runtime, &backward, NULL));
  expect_row_gradient(&given, spent.logits);
}

/* Ids that are wrong are counted; a transform and a row list are applied. */
static void test_members(logpjit_runtime* runtime) {
  problem given = make_problem();
  given.ids[1] = kVocab + 3;
  values out = {.out_of_range = 0};
  logpjit_row_forward call = LOGPJIT_ROW_FORWARD_INIT;
  call.logits = matrix_of(given.logits);
  const int64_t index[2] = {2, 1};
  const int64_t ids[2] = {3, kVocab + 3};
  const float temperatures[2] = {2, 1};
  call.row_index = row_vector(index, LOGPJIT_INT64);
  call.ids = row_vector(ids, LOGPJIT_INT64);
  call.logp = row_vector(out.logp, LOGPJIT_FP32);
  call.transform.temperatures = row_vector(temperatures, LOGPJIT_FP32);
  logpjit_tensor* vectors[] = {&call.row_index, &call.ids, &call.logp,
                               &call.transform.temperatures};
  for (int i = 0; i < 4; ++i) vectors[i]->shape[0] = 2;
  call.out_of_range = row_vector(&out.out_of_range, LOGPJIT_INT64);
  call.out_of_range.shape[0] = 1;
  EXPECT_OK(logpjit_forward(runtime, &call, NULL));
  float halved[kVocab];
  for (int j = 0; j < kVocab; ++j) halved[j] = given.logits[2 * kVocab + j] / 2;
  EXPECT(near(out.logp[0], reference_logp(halved, 3)));
  EXPECT(out.logp[1] == 0);
  EXPECT(out.out_of_range == 1);
}

static void* take(void* context, size_t bytes, logpjit_stream stream) {
  EXPECT(stream == NULL && bytes > 0 && bytes <= 4096);
  return context;
}

/* The options of a call: validation, the copy of strided logits into what the
   caller gives, the fallback. */
static void test_call_options(logpjit_runtime* runtime) {
  const problem given = make_problem();
  float turned[kVocab * kRows], logp[kRows];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVocab; ++j) {
      turned[j * kRows + i] = given.logits[i * kVocab + j];
    }
  }
  logpjit_row_forward call = LOGPJIT_ROW_FORWARD_INIT;
  call.logits = matrix_of(turned);
  call.logits.strides[0] = 1;
  call.logits.strides[1] = kRows;
  call.ids = row_vector(given.ids, LOGPJIT_INT64);
  call.logp = row_vector(logp, LOGPJIT_FP32);
  call.options.copy_strided = 1;
  call.options.validate = 1;
  uint64_t bytes = 0;
  EXPECT_OK(logpjit_forward_workspace(&call, &bytes));
  EXPECT(bytes >= sizeof(turned));
  _Alignas(256) unsigned char space[4096];
  call.options.allocate = take;
  call.options.context = space;
  EXPECT_OK(logpjit_forward(runtime, &call, NULL));
  call.options.fallback = 1;
  call.options.chunk_rows = 2;
  for (int i = 0; i < kRows; ++i) {
    EXPECT(
        near(logp[i], reference_logp(given.logits + i * kVocab, given.ids[i])));
    logp[i] = 7;
  }
  EXPECT_OK(logpjit_forward(runtime, &call, NULL));
  for (int i = 0; i < kRows; ++i) {
    EXPECT(
        near(logp[i], reference_logp(given.logits + i * kVocab, given.ids[i])));
  }
  call.options.chunk_rows = -1;
  EXPECT_REFUSAL(logpjit_forward(runtime, &call, NULL),
                 LOGPJIT_INVALID_ARGUMENT, "chunk");
  call.options.chunk_rows = 0;
  const int64_t wrong[kRows] = {4, kVocab, 1};
  call.ids = row_vector(wrong, LOGPJIT_INT64);
  EXPECT_REFUSAL(logpjit_forward(runtime, &call, NULL),
                 LOGPJIT_INVALID_ARGUMENT, "ids");

  // The other calls need none unless they copy.
  logpjit_row_backward backward = LOGPJIT_ROW_BACKWARD_INIT;
  logpjit_row_gradient gradient = LOGPJIT_ROW_GRADIENT_INIT;
  logpjit_kl_forward_call kl = LOGPJIT_KL_FORWARD_INIT;
  logpjit_kl_backward_call of_kl = LOGPJIT_KL_BACKWARD_INIT;
  logpjit_row_forward plain = LOGPJIT_ROW_FORWARD_INIT;
  uint64_t none[4] = {1, 1, 1, 1};
  EXPECT_OK(logpjit_backward_workspace(&backward, &none[0]));
  EXPECT_OK(logpjit_forward_with_grad_workspace(&plain, &gradient, &none[1]));
  EXPECT_OK(logpjit_kl_forward_workspace(&kl, &none[2]));
  EXPECT_OK(logpjit_kl_backward_workspace(&of_kl, &none[3]));
  for (int i = 0; i < 4; ++i) EXPECT(none[i] == 0);
  EXPECT_REFUSAL(logpjit_forward_workspace(&plain, NULL),
                 LOGPJIT_INVALID_ARGUMENT, "bytes");
}

static void test_kl(logpjit_runtime* runtime, int32_t direction) {
  const problem given = make_problem();
  float kl[kRows], stats[4][kRows];
  logpjit_kl_forward_call forward = LOGPJIT_KL_FORWARD_INIT;
  forward.inputs.student = matrix_of(given.logits);
  forward.inputs.teacher = matrix_of(given.teacher);
  forward.inputs.direction = direction;
  forward.kl = row_vector(kl, LOGPJIT_FP32);
  forward.student_max = row_vector(stats[0], LOGPJIT_FP32);
  forward.student_sum = row_vector(stats[1], LOGPJIT_FP32);
  forward.teacher_max = row_vector(stats[2], LOGPJIT_FP32);
  forward.teacher_sum = row_vector(stats[3], LOGPJIT_FP32);
  EXPECT_OK(logpjit_kl_forward(runtime, &forward, NULL));

  const float ones[kRows] = {1, 1, 1};
  float of_student[kRows * kVocab], of_teacher[kRows * kVocab];
  logpjit_kl_backward_call backward = LOGPJIT_KL_BACKWARD_INIT;
  backward.inputs = forward.inputs;
  backward.kl = forward.kl;
  backward.student_max = forward.student_max;
  backward.student_sum = forward.student_sum;
  backward.teacher_max = forward.teacher_max;
  backward.teacher_sum = forward.teacher_sum;
  backward.upstream = row_vector(ones, LOGPJIT_FP32);
  backward.student_gradient.tensor = matrix_of(of_student);
  backward.teacher_gradient.tensor = matrix_of(of_teacher);
  EXPECT_OK(logpjit_kl_backward(runtime, &backward, NULL));

  const bool reverse = direction == LOGPJIT_KL_REVERSE;
  const float* a = reverse ? given.logits : given.teacher;
  const float* b = reverse ? given.teacher : given.logits;
  const float* of_a = reverse ? of_student : of_teacher;
  const float* of_b = reverse ? of_teacher : of_student;
  for (int i = 0; i < kRows; ++i) {
    const float* x = a + i * kVocab;
    const float* y = b + i * kVocab;
    const double right = reference_kl(x, y);
    EXPECT(near(kl[i], right));
    for (int j = 0; j < kVocab; ++j) {
      const double p = softmax_at(x, j), q = softmax_at(y, j);
      EXPECT(near(of_a[i * kVocab + j], p * (log(p / q) - right)));
      EXPECT(near(of_b[i * kVocab + j], q - p));
    }
  }
}

/* No rows: success, nothing is touched, and no pointer is needed. */
static void test_no_rows(logpjit_runtime* runtime) {
  const logpjit_tensor matrix = {.dtype = LOGPJIT_FP32,
                                 .rank = 3,
                                 .shape = {2, 0, kVocab},
                                 .strides = {kVocab, kVocab, 1}};
  const logpjit_tensor rows = {
      .dtype = LOGPJIT_FP32, .rank = 2, .shape = {2, 0}, .strides = {1, 1}};
  logpjit_row_forward forward = LOGPJIT_ROW_FORWARD_INIT;
  forward.logits = matrix;
  forward.entropy = rows;
  EXPECT_OK(logpjit_forward(runtime, &forward, NULL));
  logpjit_kl_backward_call backward = LOGPJIT_KL_BACKWARD_INIT;
  backward.inputs.student = backward.inputs.teacher = matrix;
  backward.kl = backward.upstream = rows;
  backward.student_max = backward.student_sum = rows;
  backward.teacher_max = backward.teacher_sum = rows;
  backward.student_gradient.tensor = matrix;
  EXPECT_OK(logpjit_kl_backward(runtime, &backward, NULL));
}

void test_operations(void) {
  logpjit_runtime* runtime = make_cpu_runtime();
  test_rows(runtime);
  test_members(runtime);
  test_no_rows(runtime);
  test_call_options(runtime);
  test_kl(runtime, LOGPJIT_KL_FORWARD);
  test_kl(runtime, LOGPJIT_KL_REVERSE);
  logpjit_runtime_destroy(runtime);
}
