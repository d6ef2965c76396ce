// The templates as logpjit-scan sees them: the names of prelude/device.h as
// declarations, and the markers as attributes that libclang reports. Nothing
// here is ever run; the comments on what each does stand in device.h.
#pragma once

#define LOGPJIT_DEVICE inline
// The expressions go along so that a wrong name in them is an error here.
#define LOGPJIT_KERNEL(block, min_blocks) \
  __attribute__((annotate("logpjit:kernel", (block), (min_blocks)))) void
#define LOGPJIT_CLUSTER_KERNEL(block, min_blocks) \
  LOGPJIT_KERNEL(block, min_blocks)
#define LOGPJIT_SPEC(parameter, domain) \
  __attribute__((annotate("logpjit:spec:" #parameter ":" domain)))
#define LOGPJIT_TUNE(parameter, domain) \
  __attribute__((annotate("logpjit:tune:" #parameter ":" domain)))
#define LOGPJIT_UNROLL
#define LOGPJIT_NO_UNROLL

namespace logpjit::device {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

struct alignas(16) Word {
  u32 x, y, z, w;
};

LOGPJIT_DEVICE int thread_index();
LOGPJIT_DEVICE i64 block_index();
LOGPJIT_DEVICE i64 grid_blocks();
LOGPJIT_DEVICE i64 multiprocessors();
LOGPJIT_DEVICE int cluster_rank();

LOGPJIT_DEVICE void sync_threads();
LOGPJIT_DEVICE void sync_named(int id, int threads);
LOGPJIT_DEVICE void sync_cluster();
LOGPJIT_DEVICE void sync_warp();

LOGPJIT_DEVICE float shuffle_xor(float value, int mask);
LOGPJIT_DEVICE i32 shuffle_xor(i32 value, int mask);
LOGPJIT_DEVICE float shuffle(float value, int lane);
LOGPJIT_DEVICE u32 ballot(bool value);
LOGPJIT_DEVICE int count_bits(u32 value);
LOGPJIT_DEVICE int warp_of(int thread);

template <typename T>
LOGPJIT_DEVICE T* shared_memory(int byte_offset);

LOGPJIT_DEVICE Word load_stream(const Word* from);
LOGPJIT_DEVICE Word load_shared_line(const Word* from);

struct CachePolicy {
  u64 value;
};
LOGPJIT_DEVICE CachePolicy keep_policy();
LOGPJIT_DEVICE CachePolicy evict_policy();
LOGPJIT_DEVICE Word load_with(CachePolicy policy, const Word* from);
LOGPJIT_DEVICE void store_with(CachePolicy policy, Word* to, Word word);
LOGPJIT_DEVICE void prefetch(const void* line);
LOGPJIT_DEVICE void store_stream(Word* to, Word word);
LOGPJIT_DEVICE void add_relaxed(u64* counter, u64 value);

LOGPJIT_DEVICE float fma(float a, float b, float c);
LOGPJIT_DEVICE float divide(float a, float b);
LOGPJIT_DEVICE float exp2_approx(float x);
LOGPJIT_DEVICE float exp2_centered(float x);
LOGPJIT_DEVICE float max_nan(float a, float b);
LOGPJIT_DEVICE float settled(float value);
LOGPJIT_DEVICE int settled(int value);
LOGPJIT_DEVICE float opaque(float value);
template <typename T>
LOGPJIT_DEVICE T* settled(T* pointer);
LOGPJIT_DEVICE float max_number(float a, float b);
LOGPJIT_DEVICE float log_accurate(float x);
LOGPJIT_DEVICE float expm1_accurate(float x);
LOGPJIT_DEVICE float tanh_accurate(float x);
LOGPJIT_DEVICE u32 shift_pair(u32 low, u32 high, int bits);
LOGPJIT_DEVICE u32 bits_of(float value);
LOGPJIT_DEVICE float float_of(u32 bits);
LOGPJIT_DEVICE u32 pack_bf16(float low, float high);
LOGPJIT_DEVICE u32 pack_fp16(float low, float high);
LOGPJIT_DEVICE float float_of_half(u16 bits);
LOGPJIT_DEVICE u32 max_pair_bf16(u32 a, u32 b);
LOGPJIT_DEVICE u32 max_pair_fp16(u32 a, u32 b);

struct alignas(8) Mbarrier {
  u64 state;
};
LOGPJIT_DEVICE void mbarrier_init(Mbarrier* barrier, int arrivals);
LOGPJIT_DEVICE void mbarrier_publish();
LOGPJIT_DEVICE void mbarrier_arrive(Mbarrier* barrier);
LOGPJIT_DEVICE void mbarrier_expect(Mbarrier* barrier, u32 bytes);
LOGPJIT_DEVICE void mbarrier_wait(Mbarrier* barrier, u32 parity);
LOGPJIT_DEVICE void send_at(float* to, int rank, float value,
                            Mbarrier* barrier);
LOGPJIT_DEVICE void bulk_load(void* to, const void* from, u32 bytes,
                              Mbarrier* barrier, CachePolicy policy);
LOGPJIT_DEVICE void store_at(float* to, int rank, float value);

}  // namespace logpjit::device
