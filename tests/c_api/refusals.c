// Misuse: a status and a message that names the argument.
#include <string.h>

#include "c_api_test.h"

static void test_null_pointers(logpjit_runtime* runtime) {
  logpjit_row_forward call = LOGPJIT_ROW_FORWARD_INIT;
  logpjit_kernel* kernel = NULL;
  const char* text = NULL;
  const int wrong = LOGPJIT_INVALID_ARGUMENT;
  EXPECT_REFUSAL(logpjit_runtime_create(NULL, NULL), wrong, "runtime");
  EXPECT_REFUSAL(logpjit_runtime_device(runtime, NULL), wrong, "null");
  EXPECT_REFUSAL(logpjit_runtime_counters(NULL, NULL), wrong, "runtime");
  EXPECT_REFUSAL(logpjit_runtime_compiler(runtime, NULL), wrong, "identity");
  EXPECT_REFUSAL(logpjit_runtime_compiler(NULL, &text), wrong, "runtime");
  EXPECT_REFUSAL(logpjit_forward(NULL, &call, NULL), wrong, "forward: runtime");
  EXPECT_REFUSAL(logpjit_forward(runtime, NULL, NULL), wrong, "null");
  EXPECT_REFUSAL(logpjit_backward(runtime, NULL, NULL), wrong, "backward");
  EXPECT_REFUSAL(logpjit_kl_forward(runtime, NULL, NULL), wrong, "kl_forward");
  EXPECT_REFUSAL(logpjit_kl_backward(runtime, NULL, NULL), wrong, "kl_back");
  EXPECT_REFUSAL(logpjit_forward_with_grad(runtime, &call, NULL, NULL), wrong,
                 "forward_with_grad");
  EXPECT_REFUSAL(logpjit_prepare(runtime, NULL, 1), wrong, "specs");
  EXPECT_REFUSAL(logpjit_kernel_create(runtime, NULL, NULL, &kernel), wrong,
                 "null");
  EXPECT_REFUSAL(logpjit_kernel_config(NULL, 1, NULL, 0, NULL), wrong,
                 "kernel");
  EXPECT_REFUSAL(logpjit_kernel_launch(NULL, &call, NULL), wrong, "kernel");
}

/* One field beyond what the library knows. */
typedef struct longer_call {
  logpjit_row_forward known;
  int64_t later;
} longer_call;

static void test_sizes(logpjit_runtime* runtime) {
  const problem given = make_problem();
  float logp[kRows];
  longer_call call = {.known = LOGPJIT_ROW_FORWARD_INIT};
  call.known.logits = matrix_of(given.logits);
  call.known.ids = row_vector(given.ids, LOGPJIT_INT64);
  call.known.logp = row_vector(logp, LOGPJIT_FP32);
  call.known.size = sizeof(call);
  EXPECT_OK(logpjit_forward(runtime, &call.known, NULL));
  EXPECT(near(logp[0], reference_logp(given.logits, given.ids[0])));
  call.later = 1;
  EXPECT_REFUSAL(logpjit_forward(runtime, &call.known, NULL),
                 LOGPJIT_INVALID_ARGUMENT, "size");
  call.known.size = 0;
  EXPECT_REFUSAL(logpjit_forward(runtime, &call.known, NULL),
                 LOGPJIT_INVALID_ARGUMENT, "_INIT");
}

static void test_members(logpjit_runtime* runtime) {
  const problem given = make_problem();
  float logp[kRows];
  logpjit_row_forward good = LOGPJIT_ROW_FORWARD_INIT;
  good.logits = matrix_of(given.logits);
  good.ids = row_vector(given.ids, LOGPJIT_INT64);
  good.logp = row_vector(logp, LOGPJIT_FP32);
  const int wrong = LOGPJIT_INVALID_ARGUMENT;

  logpjit_row_forward call = good;
  call.logits.rank = 9;
  EXPECT_REFUSAL(logpjit_forward(runtime, &call, NULL), wrong, "logits: rank");
  call = good;
  call.ids.dtype = 12;
  EXPECT_REFUSAL(logpjit_forward(runtime, &call, NULL), wrong, "ids: 12");
  call = good;
  call.logp.device_kind = LOGPJIT_CUDA;
  EXPECT_REFUSAL(logpjit_forward(runtime, &call, NULL), wrong, "logp: lies on");
  call = good;
  call.transform.temperature = 0;
  EXPECT_REFUSAL(logpjit_forward(runtime, &call, NULL), wrong, "temperature");
  call = good;
  call.logits.strides[1] = 2;
  EXPECT_REFUSAL(logpjit_forward(runtime, &call, NULL), LOGPJIT_UNSUPPORTED,
                 "logits: stride");

  logpjit_kl_forward_call kl = LOGPJIT_KL_FORWARD_INIT;
  kl.inputs.direction = 5;
  EXPECT_REFUSAL(logpjit_kl_forward(runtime, &kl, NULL), wrong, "direction");

  logpjit_spec spec = LOGPJIT_SPEC_INIT;
  const logpjit_spec* specs[] = {&spec};
  EXPECT_REFUSAL(logpjit_prepare(runtime, specs, 1), wrong, "vocab");
  spec.vocab = kVocab;
  spec.op = "lgop";
  EXPECT_REFUSAL(logpjit_prepare(runtime, specs, 1), wrong, "lgop");
  spec.op = "logp";
  spec.ids = LOGPJIT_FP32;
  EXPECT_REFUSAL(logpjit_prepare(runtime, specs, 1), wrong, "ids");
}

static void test_options(void) {
  logpjit_options options = LOGPJIT_OPTIONS_INIT;
  logpjit_runtime* runtime = (logpjit_runtime*)&options;
  options.device = "toaster";
  EXPECT_REFUSAL(logpjit_runtime_create(&options, &runtime),
                 LOGPJIT_INVALID_ARGUMENT, "toaster");
  EXPECT(runtime == NULL);
  options.device = "cpu";
  options.cpu_threads = -1;
  EXPECT_REFUSAL(logpjit_runtime_create(&options, &runtime),
                 LOGPJIT_INVALID_ARGUMENT, "cpu_threads");
  options.cpu_threads = 0;
  options.compile_timeout_s = -2;
  EXPECT_REFUSAL(logpjit_runtime_create(&options, &runtime),
                 LOGPJIT_INVALID_ARGUMENT, "compile_timeout_s");

  options.compile_timeout_s = 0;
  options.fallback = 4;
  EXPECT_REFUSAL(logpjit_runtime_create(&options, &runtime),
                 LOGPJIT_INVALID_ARGUMENT, "fallback");

  // In no cache, and not to be compiled.
  options.fallback = LOGPJIT_FALLBACK_NEVER;
  options.cache_directory = "";
  options.never_compile = 1;
  EXPECT_OK(logpjit_runtime_create(&options, &runtime));
  logpjit_spec spec = LOGPJIT_SPEC_INIT;
  spec.vocab = kVocab;
  const logpjit_spec* specs[] = {&spec};
  EXPECT_REFUSAL(logpjit_prepare(runtime, specs, 1), LOGPJIT_NOT_CACHED, "");
  logpjit_runtime_destroy(runtime);

  options.never_compile = 0;
  options.host_compiler = "/no/such/compiler";
  EXPECT_OK(logpjit_runtime_create(&options, &runtime));
  const char* identity = NULL;
  EXPECT_REFUSAL(logpjit_runtime_compiler(runtime, &identity),
                 LOGPJIT_UNAVAILABLE, "/no/such/compiler");
  EXPECT(identity == NULL);
  logpjit_runtime_destroy(runtime);
}

void test_refusals(void) {
  logpjit_runtime* runtime = make_cpu_runtime();
  test_null_pointers(runtime);
  test_sizes(runtime);
  test_members(runtime);
  test_options();
  logpjit_runtime_destroy(runtime);
}
