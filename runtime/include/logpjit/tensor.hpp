// A tensor somebody else owns.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "logpjit/api.hpp"
#include "logpjit/device.hpp"
#include "logpjit/dtype.hpp"

namespace logpjit {

/// Non-owning view: pointer, dtype, shape, strides (in elements), device. A
/// default view (null data, rank 0) means "not given". What is passed as an
/// input is never written. A value: copy freely; the memory must outlive the
/// device work that uses it.
struct LOGPJIT_API TensorView {
  static constexpr int kMaxRank = 4;

  void* data = nullptr;
  DType dtype = DType::kFp32;
  int rank = 0;
  std::array<std::int64_t, kMaxRank> shape{};
  std::array<std::int64_t, kMaxRank> strides{};
  DeviceId device;

  /// Row-major, without gaps.
  static TensorView contiguous(const void* data, DType dtype,
                               std::initializer_list<std::int64_t> shape,
                               DeviceId device = {});

  bool given() const { return rank > 0; }
  /// Product of the dimensions before the last `trailing` ones.
  std::int64_t leading(int trailing = 0) const;
};

}  // namespace logpjit
