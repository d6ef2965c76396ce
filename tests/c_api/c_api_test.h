// What the C tests share: checks that count, a small problem, its float64
// answers.
#ifndef LOGPJIT_TESTS_C_API_TEST_H
#define LOGPJIT_TESTS_C_API_TEST_H

#include <logpjit/logpjit.h>
#include <stdbool.h>
#include <stdint.h>

void fail_at(const char* file, int line, const char* what);

/* Says what was expected where it does not hold, and goes on. */
#define EXPECT(condition) \
  ((condition) ? (void)0 : fail_at(__FILE__, __LINE__, #condition))
/* The call must succeed; says the library's message otherwise. */
void expect_ok(const char* file, int line, const char* what, int status);
#define EXPECT_OK(call) expect_ok(__FILE__, __LINE__, #call, call)
/* The call must fail so, with this text in its message. */
void expect_refusal(const char* file, int line, int status, int wanted,
                    const char* text);
#define EXPECT_REFUSAL(call, wanted, text) \
  expect_refusal(__FILE__, __LINE__, call, wanted, text)

enum { kRows = 3, kVocab = 37 };

/* Logits, teacher and ids; row 1 is ignored. */
typedef struct problem {
  float logits[kRows * kVocab];
  float teacher[kRows * kVocab];
  int64_t ids[kRows];
} problem;

problem make_problem(void);
/* In float64, by the definitions. */
double reference_logp(const float* row, int64_t id);
double reference_entropy(const float* row);
double reference_kl(const float* a, const float* b);
double softmax_at(const float* row, int column);
bool near(float value, double right);

logpjit_runtime* make_cpu_runtime(void);
logpjit_tensor matrix_of(const float* data);
logpjit_tensor row_vector(const void* data, int32_t dtype);

void test_runtimes(void);
void test_operations(void);
void test_kernels(void);
void test_refusals(void);
void test_shards(void);

#endif
