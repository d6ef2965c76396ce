// Kernels prepared, described, held and launched.
#include <string.h>

#include "c_api_test.h"

void test_kernels(void) {
  logpjit_runtime* runtime = make_cpu_runtime();
  logpjit_spec spec = LOGPJIT_SPEC_INIT;
  spec.vocab = kVocab;
  spec.logits = LOGPJIT_FP32;
  spec.unaligned = 1;
  logpjit_spec gradient = spec;
  gradient.op = "logp+entropy_backward";
  const logpjit_spec* specs[] = {&spec, &gradient};
  EXPECT_OK(logpjit_prepare(runtime, specs, 2));
  EXPECT_OK(logpjit_prepare(runtime, NULL, 0));
  logpjit_counters before = {.size = sizeof(before)};
  EXPECT_OK(logpjit_runtime_counters(runtime, &before));
  EXPECT(before.loaded >= 2);

  logpjit_kernel* kernel = NULL;
  EXPECT_OK(logpjit_kernel_create(runtime, &spec, NULL, &kernel));
  char config[256];
  size_t needed = 0;
  EXPECT_OK(
      logpjit_kernel_config(kernel, kRows, config, sizeof(config), &needed));
  EXPECT(needed == strlen(config) + 1 && strstr(config, "block=") != NULL);
  char cut[6];
  EXPECT_OK(logpjit_kernel_config(kernel, kRows, cut, sizeof(cut), NULL));
  EXPECT(strlen(cut) == 5 && strncmp(cut, config, 5) == 0);
  EXPECT_OK(logpjit_kernel_config(kernel, kRows, NULL, 0, &needed));

  // What was prepared serves: nothing more is loaded.
  const problem given = make_problem();
  float logp[kRows];
  logpjit_row_forward call = LOGPJIT_ROW_FORWARD_INIT;
  call.logits = matrix_of(given.logits);
  call.ids = row_vector(given.ids, LOGPJIT_INT64);
  call.logp = row_vector(logp, LOGPJIT_FP32);
  EXPECT_OK(logpjit_kernel_launch(kernel, &call, NULL));
  for (int i = 0; i < kRows; ++i) {
    EXPECT(
        near(logp[i], reference_logp(given.logits + i * kVocab, given.ids[i])));
  }
  EXPECT_OK(logpjit_forward(runtime, &call, NULL));
  logpjit_counters after = {.size = sizeof(after)};
  EXPECT_OK(logpjit_runtime_counters(runtime, &after));
  EXPECT(after.loaded == before.loaded);

  // The same configuration, by name.
  logpjit_kernel* fixed = NULL;
  EXPECT_OK(logpjit_kernel_create(runtime, &spec, config, &fixed));
  EXPECT_OK(logpjit_kernel_launch(fixed, &call, NULL));
  logpjit_kernel_destroy(fixed);
  EXPECT_REFUSAL(logpjit_kernel_create(runtime, &spec, "block=7", &fixed),
                 LOGPJIT_INVALID_ARGUMENT, "block");
  EXPECT(fixed == NULL);
  logpjit_kernel_destroy(kernel);
  logpjit_runtime_destroy(runtime);
}
