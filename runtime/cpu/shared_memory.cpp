// Poison inside, a fence of known bytes on both sides.
#include "runtime/cpu/shared_memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace logpjit::runtime {
namespace {

constexpr std::size_t kAlignment = 128;  // as in prelude/device.h
constexpr std::size_t kFenceBytes = 256;
constexpr unsigned char kPoison = 0xa5;
constexpr unsigned char kFence = 0x5c;

bool is_fence(const unsigned char* from) {
  return std::all_of(from, from + kFenceBytes,
                     [](unsigned char byte) { return byte == kFence; });
}

}  // namespace

void SharedMemory::Free::operator()(unsigned char* block) const {
  ::operator delete[](block, std::align_val_t{kAlignment});
}

void SharedMemory::reset(std::size_t bytes) {
  if (block_ == nullptr || bytes > capacity_) {
    block_.reset(static_cast<unsigned char*>(::operator new[](
        bytes + 2 * kFenceBytes, std::align_val_t{kAlignment})));
    capacity_ = bytes;
    data_ = block_.get() + kFenceBytes;
    std::memset(block_.get(), kFence, kFenceBytes);
  }
  size_ = bytes;
  std::memset(data_, kPoison, bytes);
  std::memset(data_ + bytes, kFence, kFenceBytes);
}

bool SharedMemory::intact() const {
  return is_fence(data_ - kFenceBytes) && is_fence(data_ + size_);
}

}  // namespace logpjit::runtime
