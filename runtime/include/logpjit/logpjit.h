// The C interface: the operations of operations.hpp for C11, ctypes, Rust and
// compilers with another C++ ABI.
//
// Every call returns a logpjit_status; what went wrong is then said by
// logpjit_last_error(), per thread. No exception leaves a call. Structs that
// may grow begin with `size`: set it to the struct's sizeof (the *_INIT macros
// do, and set the defaults); fields a caller does not know yet are then absent,
// and fields the library does not know yet are refused unless 0. The members
// mean what the C++ structs of the same name say; sizes and strides are in
// elements; a tensor of rank 0 is "not given". Memory stays the caller's.
// Handles may be shared between threads; a runtime must outlive its kernels and
// its work.
#ifndef LOGPJIT_LOGPJIT_H
#define LOGPJIT_LOGPJIT_H

#include <stddef.h>
#include <stdint.h>

#define LOGPJIT_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum logpjit_status {
  LOGPJIT_OK = 0,
  LOGPJIT_INVALID_ARGUMENT = 1, /* the message names the argument */
  LOGPJIT_UNSUPPORTED = 2,      /* legal, but not possible here */
  LOGPJIT_UNAVAILABLE = 3,      /* no such device, driver or compiler */
  LOGPJIT_COMPILE_FAILED = 4,   /* logpjit_last_log() has the output */
  LOGPJIT_DRIVER = 5,
  LOGPJIT_IO = 6,
  LOGPJIT_TIMEOUT = 7,
  LOGPJIT_NOT_CACHED = 8, /* never_compile, and in no cache */
  LOGPJIT_INTERNAL = 9,
  LOGPJIT_OUT_OF_MEMORY = 10
} logpjit_status;

/* Of the calling thread's last call that failed; valid until its next one. */
LOGPJIT_C_API const char* logpjit_last_error(void);
/* A compiler's output, or "". */
LOGPJIT_C_API const char* logpjit_last_log(void);
/* "invalid_argument", ...; "unknown" for a number that is no status. */
LOGPJIT_C_API const char* logpjit_status_name(int status);
/* "0.1.0": major and minor must be those the header was taken from. */
LOGPJIT_C_API const char* logpjit_version(void);

// ---- Runtimes ---------------------------------------------------------------

typedef struct logpjit_runtime logpjit_runtime;

/* One line per warning or event, from any thread that uses the runtime; must
   not call back into it. */
typedef void (*logpjit_log)(void* user, const char* line);

/* When the kernels that the library carries serve: where another cannot be
   built, never, or always. */
typedef enum logpjit_fallback {
  LOGPJIT_FALLBACK_UNSET = 0,
  LOGPJIT_FALLBACK_WHEN_NEEDED = 1,
  LOGPJIT_FALLBACK_NEVER = 2,
  LOGPJIT_FALLBACK_ALWAYS = 3
} logpjit_fallback;

/* NULL and 0 leave what the environment says, or without `use_environment` the
   defaults. Lists are separated by ':'. */
typedef struct logpjit_options {
  uint64_t size;
  const char* device;          /* "cpu", "cuda" or "cuda:<i>" */
  const char* cache_directory; /* "" = in memory only */
  const char* read_only_caches;
  const char* driver_library;
  const char* nvrtc_library;
  const char* host_compiler;
  double compile_timeout_s;
  logpjit_log log;
  void* log_user;
  int32_t use_environment;
  int32_t never_compile; /* what is in no cache is LOGPJIT_NOT_CACHED */
  int32_t cpu_threads;
  int32_t fallback; /* logpjit_fallback */
} logpjit_options;

#define LOGPJIT_OPTIONS_INIT \
  { .size = sizeof(logpjit_options), .use_environment = 1 }

/* `options` may be NULL. On failure `*runtime` is NULL. */
LOGPJIT_C_API int logpjit_runtime_create(const logpjit_options* options,
                                         logpjit_runtime** runtime);
/* NULL is nothing. The device work must have ended. */
LOGPJIT_C_API void logpjit_runtime_destroy(logpjit_runtime* runtime);

/* What follows fills a struct whose `size` the caller has set; strings live as
   long as the runtime. */
typedef struct logpjit_device_info {
  uint64_t size;
  const char* name;
  const char* software;
  int64_t l2_bytes;
  int64_t shared_bytes_per_block;
  int64_t memory_bytes;
  int64_t memory_gb_per_s;
  int32_t kind; /* logpjit_device_kind */
  int32_t index;
  int32_t major, minor; /* compute capability; 0 for a CPU */
  int32_t multiprocessors;
  int32_t reserved;
} logpjit_device_info;

typedef struct logpjit_counters {
  uint64_t size;
  uint64_t compiled, disk_hits, sealed_hits, rejected, fallbacks, loaded;
} logpjit_counters;

typedef struct logpjit_cache_info {
  uint64_t size;
  const char* directory;        /* NULL: in memory only */
  const char* read_only_caches; /* ':'-separated, or "" */
  uint64_t entries;             /* good ones in `directory` */
  uint64_t bytes;
} logpjit_cache_info;

LOGPJIT_C_API int logpjit_runtime_device(const logpjit_runtime* runtime,
                                         logpjit_device_info* info);
LOGPJIT_C_API int logpjit_runtime_counters(const logpjit_runtime* runtime,
                                           logpjit_counters* counters);
LOGPJIT_C_API int logpjit_runtime_cache(logpjit_runtime* runtime,
                                        logpjit_cache_info* info);
/* Who compiles ("nvrtc 13.0 ...", "g++ 12 ..."), or LOGPJIT_UNAVAILABLE with
   the reason. */
LOGPJIT_C_API int logpjit_runtime_compiler(logpjit_runtime* runtime,
                                           const char** identity);

// ---- Tensors ----------------------------------------------------------------

typedef enum logpjit_dtype {
  LOGPJIT_FP32 = 0,
  LOGPJIT_BF16 = 1,
  LOGPJIT_FP16 = 2,
  LOGPJIT_INT32 = 3,
  LOGPJIT_INT64 = 4
} logpjit_dtype;

typedef enum logpjit_device_kind {
  LOGPJIT_CPU = 0,
  LOGPJIT_CUDA = 1
} logpjit_device_kind;

enum { LOGPJIT_MAX_RANK = 4 };

typedef struct logpjit_tensor {
  const void* data; /* written only where it is an output */
  int32_t dtype;
  int32_t rank;
  int64_t shape[LOGPJIT_MAX_RANK];
  int64_t strides[LOGPJIT_MAX_RANK];
  int32_t device_kind;
  int32_t device_index;
} logpjit_tensor;

/* A CUstream or cudaStream_t; NULL is the legacy default stream. */
typedef struct CUstream_st* logpjit_stream;

typedef struct logpjit_transform {
  float temperature; /* finite and > 0; 1 in the INIT macros */
  float softcap;     /* 0 = none */
  logpjit_tensor temperatures;
} logpjit_transform;

typedef struct logpjit_upstream {
  logpjit_tensor logp, entropy, lse, squares;
} logpjit_upstream;

typedef struct logpjit_gradient {
  logpjit_tensor tensor;
  int32_t accumulate;
  int32_t in_place;
} logpjit_gradient;

/* How one call is carried out: call_options.hpp. Zeros are the defaults. */
typedef struct logpjit_call_options {
  int32_t validate;
  int32_t copy_strided;
  int32_t fallback;
  int32_t reserved;
  int64_t chunk_rows;   /* 0 = as the library sees fit */
  void* workspace_data; /* or `allocate`, for what copy_strided copies */
  uint64_t workspace_bytes;
  void* (*allocate)(void* context, size_t bytes, logpjit_stream stream);
  void* context;
} logpjit_call_options;

// ---- Operations: see operations.hpp for shapes and meaning ------------------

typedef struct logpjit_row_forward {
  uint64_t size;
  logpjit_tensor logits, ids, row_index;
  int64_t vocab;
  int64_t ignore_id;
  logpjit_transform transform;
  logpjit_tensor logp, entropy, lse, squares, argmax, max, sum, out_of_range;
  logpjit_call_options options;
} logpjit_row_forward;

#define LOGPJIT_ROW_FORWARD_INIT                                           \
  {                                                                        \
    .size = sizeof(logpjit_row_forward), .ignore_id = -100, .transform = { \
      .temperature = 1                                                     \
    }                                                                      \
  }

typedef struct logpjit_row_backward {
  uint64_t size;
  logpjit_tensor logits, ids, row_index;
  int64_t vocab;
  logpjit_transform transform;
  logpjit_tensor max, sum, entropy, squares;
  logpjit_upstream upstream;
  logpjit_gradient gradient;
  int64_t ignore_id;
  logpjit_call_options options;
} logpjit_row_backward;

#define LOGPJIT_ROW_BACKWARD_INIT                                          \
  {                                                                        \
    .size = sizeof(logpjit_row_backward), .transform = {.temperature = 1}, \
    .ignore_id = -100                                                      \
  }

/* What logpjit_forward_with_grad takes besides the forward's members. */
typedef struct logpjit_row_gradient {
  uint64_t size;
  logpjit_upstream upstream;
  logpjit_gradient gradient;
} logpjit_row_gradient;

#define LOGPJIT_ROW_GRADIENT_INIT \
  { .size = sizeof(logpjit_row_gradient) }

typedef enum logpjit_kl_direction {
  LOGPJIT_KL_FORWARD = 0, /* KL(teacher || student) */
  LOGPJIT_KL_REVERSE = 1  /* KL(student || teacher) */
} logpjit_kl_direction;

typedef struct logpjit_kl_inputs {
  logpjit_tensor student, teacher, row_index;
  int64_t vocab;
  logpjit_transform student_transform, teacher_transform;
  int32_t direction; /* logpjit_kl_direction */
  int32_t reserved;
} logpjit_kl_inputs;

typedef struct logpjit_kl_forward_call {
  uint64_t size;
  logpjit_kl_inputs inputs;
  logpjit_tensor kl, student_max, student_sum, teacher_max, teacher_sum;
  logpjit_call_options options;
} logpjit_kl_forward_call;

typedef struct logpjit_kl_backward_call {
  uint64_t size;
  logpjit_kl_inputs inputs;
  logpjit_tensor kl, student_max, student_sum, teacher_max, teacher_sum;
  logpjit_tensor upstream;
  logpjit_gradient student_gradient, teacher_gradient;
  logpjit_call_options options;
} logpjit_kl_backward_call;

#define LOGPJIT_KL_FORWARD_INIT                          \
  {                                                      \
    .size = sizeof(logpjit_kl_forward_call), .inputs = { \
      .student_transform = {.temperature = 1},           \
      .teacher_transform = {.temperature = 1}            \
    }                                                    \
  }
#define LOGPJIT_KL_BACKWARD_INIT                          \
  {                                                       \
    .size = sizeof(logpjit_kl_backward_call), .inputs = { \
      .student_transform = {.temperature = 1},            \
      .teacher_transform = {.temperature = 1}             \
    }                                                     \
  }

LOGPJIT_C_API int logpjit_forward(logpjit_runtime* runtime,
                                  const logpjit_row_forward* call,
                                  logpjit_stream stream);
LOGPJIT_C_API int logpjit_backward(logpjit_runtime* runtime,
                                   const logpjit_row_backward* call,
                                   logpjit_stream stream);
LOGPJIT_C_API int logpjit_forward_with_grad(logpjit_runtime* runtime,
                                            const logpjit_row_forward* values,
                                            const logpjit_row_gradient* grad,
                                            logpjit_stream stream);
LOGPJIT_C_API int logpjit_kl_forward(logpjit_runtime* runtime,
                                     const logpjit_kl_forward_call* call,
                                     logpjit_stream stream);
LOGPJIT_C_API int logpjit_kl_backward(logpjit_runtime* runtime,
                                      const logpjit_kl_backward_call* call,
                                      logpjit_stream stream);

/* Bytes of workspace that a call needs: 0 unless it copies. */
LOGPJIT_C_API int logpjit_forward_workspace(const logpjit_row_forward* call,
                                            uint64_t* bytes);
LOGPJIT_C_API int logpjit_backward_workspace(const logpjit_row_backward* call,
                                             uint64_t* bytes);
LOGPJIT_C_API int logpjit_forward_with_grad_workspace(
    const logpjit_row_forward* values, const logpjit_row_gradient* grad,
    uint64_t* bytes);
LOGPJIT_C_API int logpjit_kl_forward_workspace(
    const logpjit_kl_forward_call* call, uint64_t* bytes);
LOGPJIT_C_API int logpjit_kl_backward_workspace(
    const logpjit_kl_backward_call* call, uint64_t* bytes);

// ---- Kernels: what is compiled and loaded ahead of the calls ----------------

typedef enum logpjit_row_map {
  LOGPJIT_ROWS_STRIDED = 0,
  LOGPJIT_ROWS_STRIDED2 = 1,
  LOGPJIT_ROWS_INDEXED = 2
} logpjit_row_map;

typedef struct logpjit_spec {
  uint64_t size;
  const char* op; /* "logp", "logp+entropy_backward", "kl", ... */
  int64_t vocab;
  int32_t logits; /* logpjit_dtype; of KL's first side */
  int32_t other;  /* of KL's second side */
  int32_t ids;
  int32_t rows; /* logpjit_row_map */
  int32_t many_ids;
  int32_t unaligned; /* some row does not start at a multiple of 16 bytes */
  int32_t temperature;
  int32_t softcap;
  int32_t accumulate;
  int32_t only_grad_b; /* KL gradients: of A alone unless one of these */
  int32_t both_grads;
  int32_t reserved;
} logpjit_spec;

#define LOGPJIT_SPEC_INIT                                               \
  {                                                                     \
    .size = sizeof(logpjit_spec), .op = "logp", .logits = LOGPJIT_BF16, \
    .other = LOGPJIT_BF16, .ids = LOGPJIT_INT64                         \
  }

/* Reads, compiles and loads all of them; fails with the first failure after
   trying each. */
LOGPJIT_C_API int logpjit_prepare(logpjit_runtime* runtime,
                                  const logpjit_spec* const* specs,
                                  size_t count);

typedef struct logpjit_kernel logpjit_kernel;

/* `config` ("block=256,unroll=4") may be NULL: tuned or default. */
LOGPJIT_C_API int logpjit_kernel_create(logpjit_runtime* runtime,
                                        const logpjit_spec* spec,
                                        const char* config,
                                        logpjit_kernel** kernel);
LOGPJIT_C_API void logpjit_kernel_destroy(logpjit_kernel* kernel);
/* The tuning look-up: the launch configuration that serves `rows` rows. Copies
   at most `capacity` bytes with the NUL; `*needed` (may be NULL) is the whole
   length with it. */
LOGPJIT_C_API int logpjit_kernel_config(const logpjit_kernel* kernel,
                                        int64_t rows, char* text,
                                        size_t capacity, size_t* needed);
/* A forward call with a kernel held: no look-up. */
LOGPJIT_C_API int logpjit_kernel_launch(const logpjit_kernel* kernel,
                                        const logpjit_row_forward* call,
                                        logpjit_stream stream);

#ifdef __cplusplus
}
#endif

#endif
