// A kernel's shared object, loaded from memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/cpu/host_abi.hpp"

namespace logpjit::runtime {

/// Loads at construction and unloads at destruction: no thread may run its
/// code by then.
class SharedObject {
 public:
  /// Throws Error{kDriver} if `bytes` are no complete ELF file, the loader
  /// refuses them, or `entry` or the binding is missing or of another version.
  SharedObject(std::span<const std::byte> bytes, const std::string& entry,
               const device::HostAbi& abi);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  device::HostRun* run() const { return run_; }
  const device::HostKernel& kernel() const { return *kernel_; }

 private:
  void* symbol(const std::string& name) const;

  void* handle_ = nullptr;
  device::HostRun* run_ = nullptr;
  const device::HostKernel* kernel_ = nullptr;
};

}  // namespace logpjit::runtime
