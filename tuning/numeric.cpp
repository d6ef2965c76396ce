// Exact conversions between stored element types and float64.
#include "tuning/numeric.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "logpjit/error.hpp"

namespace logpjit::tuning {
namespace {

/// A binary floating-point format: significant bits and exponent range.
struct Format {
  int precision;
  int min_exponent;
  int max_exponent;
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return {24, -126, 127};
    case DType::kBf16:
      return {8, -126, 127};
    case DType::kFp16:
      return {11, -14, 15};
    default:
      throw Error(ErrorCode::kInternal,
                  fmt::format("{} is not a float type", name(dtype)));
  }
}

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023)
                               << 52);
}

/// floor(log2 |value|); -1023 for zero and float64 subnormals, 1024 for
/// infinities and NaN.
int exponent_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return static_cast<int>((bits >> 52) & 0x7ff) - 1023;
}

double largest(const Format& format) {
  return power_of_two(format.max_exponent) *
         (2 - power_of_two(1 - format.precision));
}

template <typename T>
T load(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

double from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

double from_fp16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  double magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = fraction * power_of_two(-24);
  } else {
    magnitude = (1024 + fraction) * power_of_two(exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

std::uint16_t to_fp16(double exact) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(exact) << 15);
  if (std::isnan(exact)) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (std::isinf(exact)) return static_cast<std::uint16_t>(sign | 0x7c00);
  const double magnitude = std::fabs(exact);
  if (magnitude < power_of_two(-14)) {
    return static_cast<std::uint16_t>(
        sign | static_cast<int>(magnitude * power_of_two(24)));
  }
  const int exponent = exponent_of(magnitude);
  const int significand =
      static_cast<int>(magnitude * power_of_two(10 - exponent));
  return static_cast<std::uint16_t>(
      sign | (((exponent + 15) << 10) + (significand - 1024)));
}

template <typename T, typename Convert>
void widen_as(const void* first, std::int64_t count, std::int64_t stride,
              double* values, Convert convert) {
  const auto* element = static_cast<const std::byte*>(first);
  const std::int64_t step = stride * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = convert(load<T>(element + i * step));
  }
}

}  // namespace

double widen(const void* element, DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return from_bf16(load<std::uint16_t>(element));
    case DType::kFp16:
      return from_fp16(load<std::uint16_t>(element));
    default:
      format_of(dtype);
      return load<float>(element);
  }
}

void widen_row(const void* first, DType dtype, std::int64_t count,
               std::int64_t stride, std::vector<double>& values) {
  values.resize(static_cast<std::size_t>(count));
  switch (dtype) {
    case DType::kBf16:
      return widen_as<std::uint16_t>(first, count, stride, values.data(),
                                     from_bf16);
    case DType::kFp16:
      return widen_as<std::uint16_t>(first, count, stride, values.data(),
                                     from_fp16);
    default:
      format_of(dtype);
      return widen_as<float>(first, count, stride, values.data(),
                             [](float value) { return double{value}; });
  }
}

double rounded(double value, DType dtype) {
  const Format format = format_of(dtype);
  const int exponent = exponent_of(value);
  if (exponent == 1024 || value == 0) return value;
  const double step = power_of_two(std::max(exponent, format.min_exponent) -
                                   (format.precision - 1));
  const double nearest = std::nearbyint(value / step) * step;
  if (std::fabs(nearest) > largest(format)) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return nearest;
}

void narrow(double value, DType dtype, void* element) {
  const double exact = rounded(value, dtype);
  if (dtype == DType::kFp16) {
    const std::uint16_t bits = to_fp16(exact);
    std::memcpy(element, &bits, sizeof bits);
    return;
  }
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(exact));
  if (dtype == DType::kFp32) {
    std::memcpy(element, &bits, sizeof bits);
    return;
  }
  const auto high = static_cast<std::uint16_t>(bits >> 16);
  std::memcpy(element, &high, sizeof high);
}

void narrow_row(const std::vector<double>& values, DType dtype,
                std::vector<std::byte>& bytes) {
  const std::size_t size = size_of(dtype);
  bytes.resize(values.size() * size);
  std::byte* element = bytes.data();
  for (const double value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    const auto high = static_cast<std::uint16_t>(bits >> 16);
    if (dtype == DType::kBf16 && from_bf16(high) == value) {
      std::memcpy(element, &high, sizeof high);  // exact, and the usual case
    } else {
      narrow(value, dtype, element);
    }
    element += size;
  }
}

double spacing(double value, DType dtype) {
  const Format format = format_of(dtype);
  const double nearest = rounded(value, dtype);
  if (!std::isfinite(nearest)) return std::numeric_limits<double>::quiet_NaN();
  return power_of_two(std::max(exponent_of(nearest), format.min_exponent) -
                      (format.precision - 1));
}

}  // namespace logpjit::tuning
