// Which context a driver call runs in.
#pragma once

#include "runtime/cuda/driver.hpp"

namespace logpjit::runtime::cuda {

/// A device's primary context, retained for the life of the object; shared with
/// PyTorch and everybody else in the process.
class PrimaryContext {
 public:
  PrimaryContext(const Driver& driver, CUdevice device);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  CUctx_st* get() const { return context_; }
  const Driver& driver() const { return driver_; }

 private:
  const Driver& driver_;
  CUdevice device_;
  CUctx_st* context_ = nullptr;
};

/// Makes the context current for a scope, unless it is already; restores what
/// was current before. Costs 0.06 us when it is, 0.2 us when not.
class CurrentContext {
 public:
  explicit CurrentContext(const PrimaryContext& context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

}  // namespace logpjit::runtime::cuda
