// Making runtimes and asking them.
#include <string.h>

#include "c_api_test.h"

static int lines = 0;
static void count_line(void* user, const char* line) {
  EXPECT(user == &lines);
  EXPECT(line != NULL && *line != '\0');
  ++lines;
}

static void expect_descriptions(logpjit_runtime* runtime) {
  logpjit_device_info device = {.size = sizeof(device)};
  EXPECT_OK(logpjit_runtime_device(runtime, &device));
  EXPECT(device.kind == LOGPJIT_CPU && device.index == 0 && device.major == 0);
  EXPECT(strlen(device.name) > 0 && strlen(device.software) > 0);
  EXPECT(device.multiprocessors == 1);
  EXPECT(device.memory_bytes > 0);

  const char* compiler = NULL;
  EXPECT_OK(logpjit_runtime_compiler(runtime, &compiler));
  EXPECT(compiler != NULL && *compiler != '\0');

  logpjit_cache_info cache = {.size = sizeof(cache), .entries = 99};
  EXPECT_OK(logpjit_runtime_cache(runtime, &cache));
  EXPECT(cache.directory == NULL);  // memory only, as asked for
  EXPECT(cache.entries == 0);
  EXPECT(strcmp(cache.read_only_caches, "") == 0);
}

/* A caller of an older header gets what it knows and no byte more. */
static void expect_older_structs_kept(logpjit_runtime* runtime) {
  logpjit_counters counters = {
      .size = 2 * sizeof(uint64_t), .compiled = 77, .disk_hits = 78};
  EXPECT_OK(logpjit_runtime_counters(runtime, &counters));
  EXPECT(counters.compiled == 0);
  EXPECT(counters.disk_hits == 78);
  EXPECT(counters.size == 2 * sizeof(uint64_t));
}

void test_runtimes(void) {
  EXPECT(strcmp(logpjit_version(), LOGPJIT_PROJECT_VERSION) == 0);
  EXPECT(strcmp(logpjit_status_name(LOGPJIT_OK), "ok") == 0);
  EXPECT(strcmp(logpjit_status_name(LOGPJIT_NOT_CACHED), "not_cached") == 0);
  EXPECT(strcmp(logpjit_status_name(LOGPJIT_OUT_OF_MEMORY), "out_of_memory") ==
         0);
  EXPECT(strcmp(logpjit_status_name(-1), "unknown") == 0);
  EXPECT(strcmp(logpjit_status_name(77), "unknown") == 0);

  logpjit_options options = LOGPJIT_OPTIONS_INIT;
  options.device = "cpu";
  options.cache_directory = "";
  options.read_only_caches = "";
  options.cpu_threads = 1;
  options.compile_timeout_s = 60;
  options.log = count_line;
  options.log_user = &lines;
  logpjit_runtime* runtime = NULL;
  EXPECT_OK(logpjit_runtime_create(&options, &runtime));
  expect_descriptions(runtime);
  expect_older_structs_kept(runtime);
  logpjit_runtime_destroy(runtime);
  logpjit_runtime_destroy(NULL);

  // A cache that no entry can be put into warns, through the callback.
  options.cache_directory = "/proc/no such place";
  options.use_environment = 0;
  EXPECT_OK(logpjit_runtime_create(&options, &runtime));
  logpjit_spec spec = LOGPJIT_SPEC_INIT;
  spec.vocab = kVocab;
  const logpjit_spec* specs[] = {&spec};
  EXPECT_OK(logpjit_prepare(runtime, specs, 1));
  EXPECT(lines > 0);
  logpjit_counters counters = {.size = sizeof(counters)};
  EXPECT_OK(logpjit_runtime_counters(runtime, &counters));
  EXPECT(counters.compiled >= 1 && counters.loaded >= 1);
  EXPECT(counters.disk_hits == 0);
  logpjit_runtime_destroy(runtime);
}
