// The dynamic shared memory of one block.
#pragma once

#include <cstddef>
#include <memory>

namespace logpjit::runtime {

/// Aligned as on a GPU, poisoned so that a kernel that reads before it writes
/// shows, and fenced so that one that writes behind the end is caught.
class SharedMemory {
 public:
  /// `bytes` of fresh, poisoned memory; keeps what was mapped before if it is
  /// large enough.
  void reset(std::size_t bytes);
  /// False if something was written just before or behind it.
  bool intact() const;

  unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(unsigned char* block) const;
  };

  std::unique_ptr<unsigned char[], Free> block_;
  std::size_t capacity_ = 0;
  unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace logpjit::runtime
