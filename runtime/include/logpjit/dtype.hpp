// Element types of tensors.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace logpjit {

/// Logits and gradients are fp32, bf16 or fp16; ids are int32 or int64; values
/// and statistics are always fp32. The names are written into cache keys and
/// reports and never change.
enum class DType { kFp32, kBf16, kFp16, kInt32, kInt64 };

constexpr std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return "fp32";
    case DType::kBf16:
      return "bf16";
    case DType::kFp16:
      return "fp16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
  }
  return "";
}

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
    case DType::kFp16:
      return 2;
    case DType::kInt64:
      return 8;
    default:
      return 4;
  }
}

constexpr bool is_float(DType dtype) {
  return dtype == DType::kFp32 || dtype == DType::kBf16 ||
         dtype == DType::kFp16;
}

constexpr std::optional<DType> parse_dtype(std::string_view text) {
  for (DType dtype : {DType::kFp32, DType::kBf16, DType::kFp16, DType::kInt32,
                      DType::kInt64}) {
    if (name(dtype) == text) return dtype;
  }
  return std::nullopt;
}

}  // namespace logpjit
