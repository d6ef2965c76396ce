// Runs one group of C tests: c_api_test NAME.
#include "c_api_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

void fail_at(const char* file, int line, const char* what) {
  printf("%s:%d: does not hold: %s\n", file, line, what);
  ++failures;
}

void expect_ok(const char* file, int line, const char* what, int status) {
  if (status == LOGPJIT_OK) return;
  printf("%s:%d: %s: %s: %s\n%s", file, line, what, logpjit_status_name(status),
         logpjit_last_error(), logpjit_last_log());
  ++failures;
}

void expect_refusal(const char* file, int line, int status, int wanted,
                    const char* text) {
  if (status == wanted && strstr(logpjit_last_error(), text) != NULL) return;
  printf("%s:%d: got %s \"%s\", expected %s with \"%s\"\n", file, line,
         logpjit_status_name(status), logpjit_last_error(),
         logpjit_status_name(wanted), text);
  ++failures;
}

problem make_problem(void) {
  problem made;
  for (int i = 0; i < kRows * kVocab; ++i) {
    made.logits[i] = (float)((i * 71 + 13) % 97) / 16.0F - 3.0F;
    made.teacher[i] = (float)((i * 29 + 5) % 89) / 16.0F - 2.0F;
  }
  made.ids[0] = 4;
  made.ids[1] = -100;
  made.ids[2] = kVocab - 1;
  return made;
}

static double log_sum(const float* row) {
  double sum = 0;
  for (int j = 0; j < kVocab; ++j) sum += exp((double)row[j]);
  return log(sum);
}

double reference_logp(const float* row, int64_t id) {
  return id < 0 || id >= kVocab ? 0 : (double)row[id] - log_sum(row);
}

double softmax_at(const float* row, int column) {
  return exp((double)row[column] - log_sum(row));
}

double reference_entropy(const float* row) {
  double sum = 0;
  for (int j = 0; j < kVocab; ++j) {
    sum -= softmax_at(row, j) * reference_logp(row, j);
  }
  return sum;
}

double reference_kl(const float* a, const float* b) {
  double sum = 0;
  for (int j = 0; j < kVocab; ++j) {
    sum += softmax_at(a, j) * (reference_logp(a, j) - reference_logp(b, j));
  }
  return sum;
}

bool near(float value, double right) {
  return fabs((double)value - right) <= 2e-6;
}

logpjit_runtime* make_cpu_runtime(void) {
  logpjit_options options = LOGPJIT_OPTIONS_INIT;
  options.device = "cpu";
  logpjit_runtime* runtime = NULL;
  EXPECT_OK(logpjit_runtime_create(&options, &runtime));
  EXPECT(runtime != NULL);
  return runtime;
}

logpjit_tensor matrix_of(const float* data) {
  logpjit_tensor made = {.data = data,
                         .dtype = LOGPJIT_FP32,
                         .rank = 2,
                         .shape = {kRows, kVocab},
                         .strides = {kVocab, 1}};
  return made;
}

logpjit_tensor row_vector(const void* data, int32_t dtype) {
  logpjit_tensor made = {.data = data,
                         .dtype = dtype,
                         .rank = 1,
                         .shape = {kRows},
                         .strides = {1}};
  return made;
}

int main(int count, char** arguments) {
  const struct {
    const char* name;
    void (*run)(void);
  } tests[] = {{"runtimes", test_runtimes},
               {"operations", test_operations},
               {"kernels", test_kernels},
               {"refusals", test_refusals},
               {"shards", test_shards}};
  for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); ++i) {
    if (count != 2 || strcmp(arguments[1], tests[i].name) != 0) continue;
    tests[i].run();
    return failures == 0 ? 0 : 1;
  }
  printf("usage: c_api_test runtimes|operations|kernels|refusals|shards\n");
  return 2;
}
