// The operations of prelude/device.h that threads do together. Each is called
// on the fiber `self`, may suspend it, and ends the run on misuse.
#pragma once

#include <cstdint>

#include "runtime/cpu/fiber.hpp"

namespace logpjit::runtime {

// barriers.cpp
void sync_threads(Fiber& self);
void sync_named(Fiber& self, int id, int threads);
void sync_cluster(Fiber& self);

// warps.cpp
void sync_warp(Fiber& self);
std::uint32_t shuffle_xor(Fiber& self, std::uint32_t value, int mask);
std::uint32_t shuffle(Fiber& self, std::uint32_t value, int lane);
std::uint32_t ballot(Fiber& self, bool value);

// remote.cpp
/// Where the address `local` of `self`'s shared memory lies in that of block
/// `rank` of its cluster. `bytes` from it must be inside.
unsigned char* at_rank(Fiber& self, void* local, std::size_t bytes, int rank,
                       const char* operation);
void store_at(Fiber& self, float* to, int rank, float value);

// mbarriers.cpp
void mbarrier_init(Fiber& self, device::u64* state, int arrivals);
void mbarrier_arrive(Fiber& self, device::u64* state);
void mbarrier_expect(Fiber& self, device::u64* state, std::uint32_t bytes);
void mbarrier_wait(Fiber& self, device::u64* state, std::uint32_t parity);
void send_at(Fiber& self, float* to, int rank, float value, device::u64* state);
void bulk_load(Fiber& self, void* to, const void* from, std::uint32_t bytes,
               device::u64* state);

/// The table a kernel is bound to: all of the above for `running_fiber`.
const device::HostAbi& host_abi();

}  // namespace logpjit::runtime
