// One number of many: reductions over the lower lane bits of a warp.
#pragma once

namespace logpjit::device {

/// Lanes whose numbers differ in bits 0 to `kBits` - 1 get the same result. The
/// whole warp calls it.
template <int kBits>
LOGPJIT_DEVICE float warp_max(float value) {
  LOGPJIT_UNROLL
  for (int bit = 0; bit < kBits; ++bit) {
    value = max_nan(value, shuffle_xor(value, 1 << bit));
  }
  return value;
}
template <int kBits>
LOGPJIT_DEVICE float warp_sum(float value) {
  LOGPJIT_UNROLL
  for (int bit = 0; bit < kBits; ++bit) {
    value += shuffle_xor(value, 1 << bit);
  }
  return value;
}
/// The lowest number that is not negative; -1 if there is none.
template <int kBits>
LOGPJIT_DEVICE i32 warp_first(i32 value) {
  LOGPJIT_UNROLL
  for (int bit = 0; bit < kBits; ++bit) {
    const i32 other = shuffle_xor(value, 1 << bit);
    value = static_cast<u32>(value) < static_cast<u32>(other) ? value : other;
  }
  return value;
}

}  // namespace logpjit::device
