// The templates as the host's C++ compiler sees them: the names of
// prelude/device.h in plain C++ without a header. What a thread cannot do alone
// goes through a table that the executor binds when it loads the kernel.
#pragma once

namespace logpjit::device {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

// --- Between kernel and executor
// ---------------------------------------------- The executor includes this
// part alone (LOGPJIT_HOST_ABI_ONLY). Any change to it raises the version.

inline constexpr u32 kHostAbiVersion = 2;

/// Who a thread is. Constant while its kernel runs.
struct HostThread {
  i64 block;
  i64 grid_blocks;
  int index;
  int cluster_rank;
  unsigned char* shared_memory;
};

/// What the executor does for the calling thread. Each entry behaves as the
/// function of its name in prelude/device.h; all but `current` may throw, which
/// ends the kernel. Floats travel as their bits, barriers as their state.
struct HostAbi {
  u32 version;
  const HostThread* (*current)();
  void (*sync_threads)();
  void (*sync_named)(int id, int threads);
  void (*sync_cluster)();
  void (*sync_warp)();
  u32 (*shuffle_xor)(u32 value, int mask);
  u32 (*shuffle)(u32 value, int lane);
  u32 (*ballot)(bool value);
  void (*mbarrier_init)(u64* state, int arrivals);
  void (*mbarrier_arrive)(u64* state);
  void (*mbarrier_expect)(u64* state, u32 bytes);
  void (*mbarrier_wait)(u64* state, u32 parity);
  void (*bulk_load)(void* to, const void* from, u32 bytes, u64* state);
  void (*store_at)(float* to, int rank, float value);
  void (*send_at)(float* to, int rank, float value, u64* state);
};

/// What a kernel says of itself when it is bound.
struct HostKernel {
  u64 argument_bytes;
  const char* text;  ///< "logpjit::device::name<...>, Arguments"
};

/// Exported by a kernel as `logpjit_bind`: takes a copy of the table; null if
/// the versions differ.
using HostBind = const HostKernel*(const HostAbi*);
/// Exported as `logpjit_kernel`: runs one thread on a copy of the arguments.
using HostRun = void(const void* arguments);

}  // namespace logpjit::device

#ifndef LOGPJIT_HOST_ABI_ONLY

#define LOGPJIT_DEVICE inline __attribute__((always_inline))
#define LOGPJIT_KERNEL(block, min_blocks) void
#define LOGPJIT_CLUSTER_KERNEL(block, min_blocks) \
  LOGPJIT_KERNEL(block, min_blocks)
#define LOGPJIT_SPEC(parameter, domain)
#define LOGPJIT_TUNE(parameter, domain)
#define LOGPJIT_UNROLL _Pragma("GCC unroll 16")
#define LOGPJIT_NO_UNROLL

namespace logpjit::device {

/// Sixteen bytes, moved as one.
struct alignas(16) Word {
  u32 x, y, z, w;
};

/// The executor's table. Internal linkage: kernels in one process share none.
static HostAbi host_abi;

// --- Who am I ---------------------------------------------------------------

LOGPJIT_DEVICE int thread_index() { return host_abi.current()->index; }
LOGPJIT_DEVICE i64 block_index() { return host_abi.current()->block; }
LOGPJIT_DEVICE i64 grid_blocks() { return host_abi.current()->grid_blocks; }
LOGPJIT_DEVICE i64 multiprocessors() { return 1; }
/// Rank of this block within its cluster; 0 without clusters.
LOGPJIT_DEVICE int cluster_rank() { return host_abi.current()->cluster_rank; }

// --- Arithmetic -------------------------------------------------------------
// Compiled with -ffp-contract=off: a fused multiply-add happens where `fma`
// stands and nowhere else.

LOGPJIT_DEVICE u32 shift_pair(u32 low, u32 high, int bits) {
  const u64 pair = static_cast<u64>(high) << 32 | low;
  return static_cast<u32>(pair >> bits);
}
LOGPJIT_DEVICE u32 bits_of(float value) {
  return __builtin_bit_cast(u32, value);
}
LOGPJIT_DEVICE float float_of(u32 bits) {
  return __builtin_bit_cast(float, bits);
}
LOGPJIT_DEVICE float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
LOGPJIT_DEVICE float divide(float a, float b) { return a / b; }
/// 2^x to 0.54 ulp; 0 below 2^-126; NaN stays NaN. Not the C library's, whose
/// bits may differ from one machine to the next.
LOGPJIT_DEVICE float exp2_approx(float x) {
  // Adding 1.5 * 2^23 rounds to an integer, which the low bits then hold.
  const float shifted = x + 0x1.8p23f;
  const double f = x - (shifted - 0x1.8p23f);
  // Minimax for 2^f on [-1/2, 1/2], relative error 2e-9.
  double power = 0x1.41fbb80f00ec0p-13;
  power = power * f + 0x1.5f3e54b1d46d0p-10;
  power = power * f + 0x1.3b2d4cfc8a588p-7;
  power = power * f + 0x1.c6aee88a26d12p-5;
  power = power * f + 0x1.ebfbdc3c16f61p-3;
  power = power * f + 0x1.62e430af2b896p-1;
  power = power * f + 1.0;
  const float y =
      float_of(bits_of(static_cast<float>(power)) + (bits_of(shifted) << 23));
  if (!(x >= -126.0f)) return x != x ? float_of(0x7fffffffu) : 0.0f;
  return x < 128.0f ? y : float_of(0x7f800000u);
}
/// The host's has no mean error.
LOGPJIT_DEVICE float exp2_centered(float x) { return exp2_approx(x); }
/// The larger, or NaN if either is; +0 is larger than -0.
LOGPJIT_DEVICE float max_nan(float a, float b) {
  if (a > b) return a;
  if (b > a) return b;
  return a == b ? float_of(bits_of(a) & bits_of(b)) : float_of(0x7fffffffu);
}
/// Natural logarithm, e^x - 1 and tanh to fp32 accuracy.
LOGPJIT_DEVICE float settled(float value) { return value; }
LOGPJIT_DEVICE int settled(int value) { return value; }
LOGPJIT_DEVICE float opaque(float value) { return value; }
template <typename T>
LOGPJIT_DEVICE T* settled(T* pointer) {
  return pointer;
}
LOGPJIT_DEVICE float max_number(float a, float b) {
  return a != a || b > a ? b : a;
}
LOGPJIT_DEVICE float log_accurate(float x) { return __builtin_logf(x); }
LOGPJIT_DEVICE float expm1_accurate(float x) { return __builtin_expm1f(x); }
LOGPJIT_DEVICE float tanh_accurate(float x) { return __builtin_tanhf(x); }

/// fp16 bits of a float, round to nearest even. NaN becomes 0x7fff.
LOGPJIT_DEVICE u16 half_bits_of(float value) {
  const u32 sign = (bits_of(value) >> 16) & 0x8000u;
  const u32 magnitude = bits_of(value) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  // From halfway between 65504 and 65536 on, rounding gives infinity.
  if (magnitude >= 0x477ff000u) return static_cast<u16>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Adding 0.5 leaves multiples of 2^-24 in the low bits, rounded.
    const float rounded = float_of(magnitude) + 0.5f;
    return static_cast<u16>(sign | (bits_of(rounded) - 0x3f000000u));
  }
  const u32 odd = (magnitude >> 13) & 1u;
  return static_cast<u16>(sign |
                          ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}
/// bf16 bits of a float, round to nearest even. NaN becomes 0x7fff.
LOGPJIT_DEVICE u16 bfloat_bits_of(float value) {
  const u32 bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<u16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
/// Two floats rounded to nearest even, packed low half first.
LOGPJIT_DEVICE u32 pack_bf16(float low, float high) {
  return bfloat_bits_of(low) | (static_cast<u32>(bfloat_bits_of(high)) << 16);
}
LOGPJIT_DEVICE u32 pack_fp16(float low, float high) {
  return half_bits_of(low) | (static_cast<u32>(half_bits_of(high)) << 16);
}
/// The float of fp16 bits, exactly.
LOGPJIT_DEVICE float float_of_half(u16 bits) {
  const u32 sign = (bits & 0x8000u) << 16;
  const u32 magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    return magnitude == 0x7c00u ? float_of(sign | 0x7f800000u)
                                : float_of(0x7fffffffu);
  }
  if (magnitude < 0x0400u) {
    const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
    return float_of(sign | bits_of(subnormal));
  }
  return float_of(sign | ((magnitude << 13) + 0x38000000u));
}

/// The larger halves of two pairs of 2-byte numbers, NaN where either is.
LOGPJIT_DEVICE u32 max_pair_bf16(u32 a, u32 b) {
  const float low = max_nan(float_of(a << 16), float_of(b << 16));
  const float high =
      max_nan(float_of(a & 0xffff0000u), float_of(b & 0xffff0000u));
  return bits_of(low) >> 16 | (bits_of(high) & 0xffff0000u);
}
LOGPJIT_DEVICE u32 max_pair_fp16(u32 a, u32 b) {
  const auto half = [](u32 bits) {
    return float_of_half(static_cast<u16>(bits & 0xffffu));
  };
  return pack_fp16(max_nan(half(a), half(b)),
                   max_nan(half(a >> 16), half(b >> 16)));
}

// --- Barriers and warps -----------------------------------------------------

LOGPJIT_DEVICE void sync_threads() { host_abi.sync_threads(); }
/// Barrier `id` (1..15) of `threads` threads, a multiple of 32.
LOGPJIT_DEVICE void sync_named(int id, int threads) {
  host_abi.sync_named(id, threads);
}
LOGPJIT_DEVICE void sync_cluster() { host_abi.sync_cluster(); }
LOGPJIT_DEVICE void sync_warp() { host_abi.sync_warp(); }

LOGPJIT_DEVICE float shuffle_xor(float value, int mask) {
  return float_of(host_abi.shuffle_xor(bits_of(value), mask));
}
LOGPJIT_DEVICE i32 shuffle_xor(i32 value, int mask) {
  return static_cast<i32>(host_abi.shuffle_xor(static_cast<u32>(value), mask));
}
LOGPJIT_DEVICE float shuffle(float value, int lane) {
  return float_of(host_abi.shuffle(bits_of(value), lane));
}
LOGPJIT_DEVICE u32 ballot(bool value) { return host_abi.ballot(value); }
LOGPJIT_DEVICE int count_bits(u32 value) { return __builtin_popcount(value); }
LOGPJIT_DEVICE int warp_of(int thread) { return thread / 32; }

// --- Memory -----------------------------------------------------------------

/// Dynamic shared memory from `byte_offset` on.
template <typename T>
LOGPJIT_DEVICE T* shared_memory(int byte_offset) {
  return reinterpret_cast<T*>(host_abi.current()->shared_memory + byte_offset);
}

LOGPJIT_DEVICE Word load_word(const Word* from) {
  Word word;
  __builtin_memcpy(&word, __builtin_assume_aligned(from, 16), sizeof word);
  return word;
}
LOGPJIT_DEVICE void store_word(Word* to, Word word) {
  __builtin_memcpy(__builtin_assume_aligned(to, 16), &word, sizeof word);
}
LOGPJIT_DEVICE Word load_stream(const Word* from) { return load_word(from); }
LOGPJIT_DEVICE Word load_shared_line(const Word* from) {
  return load_word(from);
}

/// There is no such policy on a host: it changes nothing.
struct CachePolicy {
  u64 value;
};
LOGPJIT_DEVICE CachePolicy keep_policy() { return CachePolicy{0}; }
LOGPJIT_DEVICE CachePolicy evict_policy() { return CachePolicy{0}; }
LOGPJIT_DEVICE Word load_with(CachePolicy, const Word* from) {
  return load_word(from);
}
LOGPJIT_DEVICE void store_with(CachePolicy, Word* to, Word word) {
  store_word(to, word);
}
LOGPJIT_DEVICE void prefetch(const void*) {}
LOGPJIT_DEVICE void store_stream(Word* to, Word word) { store_word(to, word); }
LOGPJIT_DEVICE void add_relaxed(u64* counter, u64 value) {
  __atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

// --- Asynchronous copies ----------------------------------------------------

/// A shared-memory barrier that counts arrivals and arrived bytes.
struct alignas(8) Mbarrier {
  u64 state;
};

LOGPJIT_DEVICE void mbarrier_init(Mbarrier* barrier, int arrivals) {
  host_abi.mbarrier_init(&barrier->state, arrivals);
}
LOGPJIT_DEVICE void mbarrier_publish() {}
LOGPJIT_DEVICE void mbarrier_arrive(Mbarrier* barrier) {
  host_abi.mbarrier_arrive(&barrier->state);
}
/// One arrival that also announces `bytes` of bulk copies.
LOGPJIT_DEVICE void mbarrier_expect(Mbarrier* barrier, u32 bytes) {
  host_abi.mbarrier_expect(&barrier->state, bytes);
}
/// Returns once the phase of the given parity has completed.
LOGPJIT_DEVICE void mbarrier_wait(Mbarrier* barrier, u32 parity) {
  host_abi.mbarrier_wait(&barrier->state, parity);
}
LOGPJIT_DEVICE void send_at(float* to, int rank, float value,
                            Mbarrier* barrier) {
  host_abi.send_at(to, rank, value, &barrier->state);
}
/// Copies `bytes` (a multiple of 16, both ends 16-byte aligned) into shared
/// memory; they arrive at `barrier`, here before the call returns.
LOGPJIT_DEVICE void bulk_load(void* to, const void* from, u32 bytes,
                              Mbarrier* barrier, CachePolicy) {
  host_abi.bulk_load(to, from, bytes, &barrier->state);
}
/// Stores to the same shared address of the cluster's block `rank`.
LOGPJIT_DEVICE void store_at(float* to, int rank, float value) {
  host_abi.store_at(to, rank, value);
}

// --- Entry ------------------------------------------------------------------

template <auto kKernel, typename Arguments>
struct HostEntry {
  static constexpr u64 kArgumentBytes = sizeof(Arguments);
  static void run(const void* arguments) {
    kKernel(*static_cast<const Arguments*>(arguments));
  }
};

}  // namespace logpjit::device

#define LOGPJIT_HOST_EXPORT extern "C" __attribute__((visibility("default")))

/// The last line of a host source: the kernel, then its argument type.
/// Variadic because a kernel's template arguments have commas too.
#define LOGPJIT_HOST_ENTRY(...)                                           \
  LOGPJIT_HOST_EXPORT void logpjit_kernel(const void* arguments) {        \
    logpjit::device::HostEntry<__VA_ARGS__>::run(arguments);              \
  }                                                                       \
  LOGPJIT_HOST_EXPORT const logpjit::device::HostKernel* logpjit_bind(    \
      const logpjit::device::HostAbi* abi) {                              \
    static constexpr logpjit::device::HostKernel kKernel{                 \
        logpjit::device::HostEntry<__VA_ARGS__>::kArgumentBytes,          \
        #__VA_ARGS__};                                                    \
    if (abi->version != logpjit::device::kHostAbiVersion) return nullptr; \
    logpjit::device::host_abi = *abi;                                     \
    return &kKernel;                                                      \
  }

#endif  // LOGPJIT_HOST_ABI_ONLY
