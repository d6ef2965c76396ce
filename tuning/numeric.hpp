// Exact conversions between stored element types and float64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "logpjit/dtype.hpp"

namespace logpjit::tuning {

// Float types only (fp32, bf16, fp16); anything else is Error{kInternal}.
// All are pure and safe to call from any thread.

/// The float64 value of the element at `element`, exact.
double widen(const void* element, DType dtype);

/// `count` elements, `stride` elements apart, exact.
void widen_row(const void* first, DType dtype, std::int64_t count,
               std::int64_t stride, std::vector<double>& values);

/// The value of `dtype` nearest to `value`, ties to even; overflow gives an
/// infinity, as IEEE 754 rounding does. Subnormals are kept.
double rounded(double value, DType dtype);

/// Stores `rounded(value, dtype)` at `element`. A NaN stays a (quiet) NaN.
void narrow(double value, DType dtype, void* element);

/// Each of `values` narrowed, one after another, in `bytes`.
void narrow_row(const std::vector<double>& values, DType dtype,
                std::vector<std::byte>& bytes);

/// Distance from |value|, rounded to `dtype`, to the next larger value: one
/// unit in the last place. Infinity and NaN give NaN.
double spacing(double value, DType dtype);

}  // namespace logpjit::tuning
