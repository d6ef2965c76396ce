// The templates as NVRTC sees them: CUDA C++ with no header of CUDA's. The only
// file with inline PTX. prelude/host.h and prelude/scan.h offer the same names.
#pragma once

#define LOGPJIT_DEVICE __device__ __forceinline__
#define LOGPJIT_KERNEL(block, min_blocks) \
  __global__ __launch_bounds__(block, min_blocks) void
#define LOGPJIT_CLUSTER_KERNEL(block, min_blocks) \
  LOGPJIT_KERNEL(block, min_blocks)
#define LOGPJIT_SPEC(parameter, domain)
#define LOGPJIT_TUNE(parameter, domain)
#define LOGPJIT_UNROLL _Pragma("unroll")
#define LOGPJIT_NO_UNROLL _Pragma("unroll 1")

namespace logpjit::device {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

/// Sixteen bytes, moved as one.
struct alignas(16) Word {
  u32 x, y, z, w;
};

// --- Who am I ---------------------------------------------------------------

LOGPJIT_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
LOGPJIT_DEVICE i64 block_index() { return blockIdx.x; }
LOGPJIT_DEVICE i64 grid_blocks() { return gridDim.x; }
/// Multiprocessors of the device: for hints, since there may be fewer.
LOGPJIT_DEVICE i64 multiprocessors() {
  u32 count;
  asm("mov.u32 %0, %%nsmid;" : "=r"(count));
  return count;
}
/// Rank of this block within its cluster; 0 without clusters.
LOGPJIT_DEVICE int cluster_rank() {
  u32 rank;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#else
  rank = 0;
#endif
  return static_cast<int>(rank);
}

// --- Barriers and warps -----------------------------------------------------

LOGPJIT_DEVICE void sync_threads() { __syncthreads(); }
/// Barrier `id` (1..15) of `threads` threads, a multiple of 32.
LOGPJIT_DEVICE void sync_named(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
LOGPJIT_DEVICE void sync_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
#endif
}
LOGPJIT_DEVICE void sync_warp() { __syncwarp(); }

LOGPJIT_DEVICE float shuffle_xor(float value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
LOGPJIT_DEVICE i32 shuffle_xor(i32 value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
LOGPJIT_DEVICE float shuffle(float value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}
LOGPJIT_DEVICE u32 ballot(bool value) {
  return __ballot_sync(0xffffffffu, value);
}
LOGPJIT_DEVICE int count_bits(u32 value) { return __popc(value); }
/// The warp of thread `thread`, all of which call it: the compiler then knows
/// that it is one for all, and that what depends on it does not part them.
LOGPJIT_DEVICE int warp_of(int thread) {
  return __shfl_sync(0xffffffffu, thread / 32, 0);
}

// --- Shared memory ----------------------------------------------------------

extern __shared__ __align__(128) unsigned char logpjit_shared_memory[];

/// Dynamic shared memory from `byte_offset` on.
template <typename T>
LOGPJIT_DEVICE T* shared_memory(int byte_offset) {
  return reinterpret_cast<T*>(logpjit_shared_memory + byte_offset);
}

// --- Global memory ----------------------------------------------------------

/// Read-once data: no allocation in L1.
LOGPJIT_DEVICE Word load_stream(const Word* from) {
  Word word;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
      : "l"(from));
  return word;
}
/// Read-only data that a neighbour reads too: kept in L1.
LOGPJIT_DEVICE Word load_shared_line(const Word* from) {
  Word word;
  asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
      : "l"(from));
  return word;
}

/// An L2 policy word. Loads kept and stores evicted first gain 4 to 6 % on an
/// H200 wherever a kernel reads and writes; plain on older GPUs.
struct CachePolicy {
  u64 value;
};
LOGPJIT_DEVICE CachePolicy keep_policy() {
  CachePolicy policy{0};
#if __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;"
      : "=l"(policy.value));
#endif
  return policy;
}
LOGPJIT_DEVICE CachePolicy evict_policy() {
  CachePolicy policy{0};
#if __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;"
      : "=l"(policy.value));
#endif
  return policy;
}
/// Not `nc`: the destination may alias what is read (in place).
LOGPJIT_DEVICE Word load_with(CachePolicy policy, const Word* from) {
  Word word;
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, "
      "[%4], %5;"
      : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
      : "l"(from), "l"(policy.value)
      : "memory");
#else
  word = *from;
#endif
  return word;
}
LOGPJIT_DEVICE void store_with(CachePolicy policy, Word* to, Word word) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to),
      "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w), "l"(policy.value)
      : "memory");
#else
  *to = word;
#endif
}
/// Starts to bring a line to the L2 cache: a hint.
LOGPJIT_DEVICE void prefetch(const void* line) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}
/// For lines that nothing reads again.
LOGPJIT_DEVICE void store_stream(Word* to, Word word) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to),
               "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
               : "memory");
}
LOGPJIT_DEVICE void add_relaxed(u64* counter, u64 value) {
  atomicAdd(counter, value);
}

// --- Arithmetic -------------------------------------------------------------
// NVRTC compiles with --fmad=false: a fused multiply-add happens where `fma`
// stands and nowhere else, so no launch configuration can change a bit.

LOGPJIT_DEVICE float fma(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
LOGPJIT_DEVICE float divide(float a, float b) { return __fdiv_rn(a, b); }
/// 2^x to 2 ulp; 0 below 2^-126; NaN stays NaN.
LOGPJIT_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// The same without its mean error, which is -5e-8 on an H200: for factors that
/// multiply one sum again and again. 1 stays 1.
LOGPJIT_DEVICE float exp2_centered(float x) {
  const float y = exp2_approx(x);
  return __fmaf_rn(y, 0x1.acp-25f, y);
}
/// The larger, or NaN if either is.
LOGPJIT_DEVICE float max_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  return (a > b || a != a) ? a : b;
#endif
}
/// The value itself, computed here: the compiler may not move what it takes
/// into a loop that uses it.
LOGPJIT_DEVICE float settled(float value) {
  asm volatile("" : "+f"(value));
  return value;
}
/// The value itself; the compiler cannot see how it was computed.
LOGPJIT_DEVICE float opaque(float value) {
  asm("" : "+f"(value));
  return value;
}
LOGPJIT_DEVICE int settled(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
/// The same for a pointer, which the compiler would compute
/// anew at every use.
template <typename T>
LOGPJIT_DEVICE T* settled(T* pointer) {
  asm volatile("" : "+l"(pointer));
  return pointer;
}
/// The larger; the other one if one is NaN.
LOGPJIT_DEVICE float max_number(float a, float b) { return fmaxf(a, b); }
/// Natural logarithm, e^x - 1 and tanh to fp32 accuracy.
LOGPJIT_DEVICE float log_accurate(float x) { return logf(x); }
LOGPJIT_DEVICE float expm1_accurate(float x) { return expm1f(x); }
LOGPJIT_DEVICE float tanh_accurate(float x) { return tanhf(x); }
/// Bits `bits` (0 to 31) to `bits` + 31 of high:low.
LOGPJIT_DEVICE u32 shift_pair(u32 low, u32 high, int bits) {
  return __funnelshift_r(low, high, static_cast<u32>(bits));
}
LOGPJIT_DEVICE u32 bits_of(float value) { return __float_as_uint(value); }
LOGPJIT_DEVICE float float_of(u32 bits) { return __uint_as_float(bits); }
/// Two floats rounded to nearest even, packed low half first. NaN stays NaN.
LOGPJIT_DEVICE u32 pack_bf16(float low, float high) {
#if __CUDA_ARCH__ >= 800
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  const float values[2] = {low, high};
  u32 halves[2];
  for (int i = 0; i < 2; ++i) {
    const u32 bits = __float_as_uint(values[i]);
    halves[i] = values[i] != values[i]
                    ? 0x7fffu
                    : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  }
  return halves[0] | (halves[1] << 16);
#endif
}
LOGPJIT_DEVICE u32 pack_fp16(float low, float high) {
  u16 halves[2];
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(halves[0]) : "f"(low));
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(halves[1]) : "f"(high));
  return halves[0] | (static_cast<u32>(halves[1]) << 16);
}
LOGPJIT_DEVICE float float_of_half(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

/// The larger halves of two pairs of 2-byte numbers, NaN where either is.
LOGPJIT_DEVICE u32 max_pair_bf16(u32 a, u32 b) {
#if __CUDA_ARCH__ >= 800
  u32 pair;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
  return pair;
#else
  const float low = max_nan(float_of(a << 16), float_of(b << 16));
  const float high =
      max_nan(float_of(a & 0xffff0000u), float_of(b & 0xffff0000u));
  return pack_bf16(low, high);
#endif
}
LOGPJIT_DEVICE u32 max_pair_fp16(u32 a, u32 b) {
#if __CUDA_ARCH__ >= 800
  u32 pair;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
  return pair;
#else
  const auto half = [](u32 bits) {
    return float_of_half(static_cast<u16>(bits & 0xffffu));
  };
  return pack_fp16(max_nan(half(a), half(b)),
                   max_nan(half(a >> 16), half(b >> 16)));
#endif
}

// --- Asynchronous copies, compute capability 9.0 and up ---------------------

/// A shared-memory barrier that counts arrivals and arrived bytes.
struct alignas(8) Mbarrier {
  u64 state;
};

LOGPJIT_DEVICE u32 shared_address(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

#if __CUDA_ARCH__ >= 900
LOGPJIT_DEVICE void mbarrier_init(Mbarrier* barrier, int arrivals) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(arrivals)
      : "memory");
}
/// Makes initialised barriers visible to the copy engine and the cluster.
LOGPJIT_DEVICE void mbarrier_publish() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
LOGPJIT_DEVICE void mbarrier_arrive(Mbarrier* barrier) {
  asm volatile(
      "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
      : "memory");
}
/// One arrival that also announces `bytes` of bulk copies.
LOGPJIT_DEVICE void mbarrier_expect(Mbarrier* barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
/// Returns once the phase of the given parity has completed; sees what this
/// block's threads and the copy engine wrote before it.
LOGPJIT_DEVICE void mbarrier_wait(Mbarrier* barrier, u32 parity) {
  asm volatile(
      "{.reg .pred done;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again_%=;}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
/// Copies `bytes` (a multiple of 16, both ends 16-byte aligned) into shared
/// memory; they arrive at `barrier`.
LOGPJIT_DEVICE void bulk_load(void* to, const void* from, u32 bytes,
                              Mbarrier* barrier, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(policy.value)
      : "memory");
}
/// Stores to the same shared address of the cluster's block `rank`.
LOGPJIT_DEVICE void store_at(float* to, int rank, float value) {
  asm volatile(
      "{.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "st.shared::cluster.f32 [remote], %2;}" ::"r"(shared_address(to)),
      "r"(rank), "f"(value)
      : "memory");
}
/// The same without a fence: the four bytes arrive at that block's `barrier`,
/// which must expect them.
LOGPJIT_DEVICE void send_at(float* to, int rank, float value,
                            Mbarrier* barrier) {
  asm volatile(
      "{.reg .b32 remote, target;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mapa.shared::cluster.u32 target, %3, %1;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [remote], %2, "
      "[target];}" ::"r"(shared_address(to)),
      "r"(rank), "r"(__float_as_uint(value)), "r"(shared_address(barrier))
      : "memory");
}
#endif

}  // namespace logpjit::device
