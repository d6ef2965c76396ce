// Stacks for fibers: mapped in slabs, kept until the pool goes.
#pragma once

#include <cstddef>
#include <vector>

namespace logpjit::runtime {

/// `top` is the first byte above; stacks grow down.
struct Stack {
  std::byte* top = nullptr;
  std::size_t size = 0;
};

/// Not shared between threads.
class StackPool {
 public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  /// A stack that stays valid as long as the pool. Below it lies a page that
  /// faults, unless the process already has very many mappings. Throws
  /// Error{kUnavailable} when there is no memory.
  Stack take();

 private:
  void map_slab();

  std::vector<std::byte*> slabs_;
  int taken_of_last_ = 0;
};

}  // namespace logpjit::runtime
