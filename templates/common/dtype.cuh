// Element types of logits and ids, and their exact conversions.
#pragma once

namespace logpjit::device {

using int32 = i32;
using int64 = i64;
using fp32 = float;
struct bf16 {
  u16 bits;
};
struct fp16 {
  u16 bits;
};

/// A group is eight consecutive columns: one word of 2-byte elements or two
/// words of 4-byte ones. It is the unit that lanes take, whatever the dtype.
constexpr int kGroup = 8;
template <typename T>
constexpr int kGroupWords = kGroup* static_cast<int>(sizeof(T)) / 16;
template <typename T>
constexpr int kWordElements = 16 / static_cast<int>(sizeof(T));

LOGPJIT_DEVICE float infinity() { return float_of(0x7f800000u); }
LOGPJIT_DEVICE float not_a_number() { return float_of(0x7fc00000u); }

template <typename A, typename B>
constexpr bool is_same = false;
template <typename A>
constexpr bool is_same<A, A> = true;

LOGPJIT_DEVICE float widen(fp32 value) { return value; }
LOGPJIT_DEVICE float widen(bf16 value) {
  return float_of(static_cast<u32>(value.bits) << 16);
}
LOGPJIT_DEVICE float widen(fp16 value) { return float_of_half(value.bits); }

/// Element `index` of a word, index known at compile time after unrolling.
template <typename T>
LOGPJIT_DEVICE float element(const Word& word, int index) {
  const u32 parts[4] = {word.x, word.y, word.z, word.w};
  if constexpr (is_same<T, fp32>) {
    return float_of(parts[index]);
  } else if constexpr (is_same<T, bf16>) {
    const u32 pair = parts[index / 2];
    return float_of(index % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
  } else {
    const u32 pair = parts[index / 2];
    return float_of_half(
        static_cast<u16>(index % 2 == 0 ? pair & 0xffffu : pair >> 16));
  }
}

/// The two elements of a part, of 2 bytes each.
template <typename T>
LOGPJIT_DEVICE void unpack_pair(u32 part, float& low, float& high) {
  if constexpr (is_same<T, bf16>) {
    low = float_of(part << 16);
    high = float_of(part & 0xffff0000u);
  } else {
    low = float_of_half(static_cast<u16>(part & 0xffffu));
    high = float_of_half(static_cast<u16>(part >> 16));
  }
}

/// Elements of a 32-bit part of a word: one, or two.
template <typename T>
constexpr int kPartElements = 4 / static_cast<int>(sizeof(T));

/// -inf in every element of a part.
template <typename T>
constexpr u32 kMaskedPart = is_same<T, fp32>   ? 0xff800000u
                            : is_same<T, bf16> ? 0xff80ff80u
                                               : 0xfc00fc00u;

template <typename T>
constexpr u32 kMaskedElement = kMaskedPart<T> >> (32 - 8 * sizeof(T));

LOGPJIT_DEVICE u32 element_bits(fp32 value) { return bits_of(value); }
LOGPJIT_DEVICE u32 element_bits(bf16 value) { return value.bits; }
LOGPJIT_DEVICE u32 element_bits(fp16 value) { return value.bits; }

/// The largest of elements that come in parts, NaN when any is NaN. 2-byte
/// elements are compared two at a time.
template <typename T>
struct Peak {
  u32 part = kMaskedPart<T>;

  LOGPJIT_DEVICE void take(u32 other) {
    if constexpr (is_same<T, fp32>) {
      part = bits_of(max_nan(float_of(part), float_of(other)));
    } else if constexpr (is_same<T, bf16>) {
      part = max_pair_bf16(part, other);
    } else {
      part = max_pair_fp16(part, other);
    }
  }
  LOGPJIT_DEVICE float value() const {
    const Word word{part, part, part, part};
    if constexpr (is_same<T, fp32>) return float_of(part);
    return max_nan(element<T>(word, 0), element<T>(word, 1));
  }
};

/// Two values rounded once each to nearest even, low half first.
template <typename T>
LOGPJIT_DEVICE u32 pack_pair(float low, float high) {
  if constexpr (is_same<T, bf16>) {
    return pack_bf16(low, high);
  } else {
    return pack_fp16(low, high);
  }
}

/// Rounds to nearest, ties to even; NaN stays NaN.
template <typename T>
LOGPJIT_DEVICE T narrow(float value) {
  if constexpr (is_same<T, fp32>) {
    return value;
  } else {
    return T{static_cast<u16>(pack_pair<T>(value, 0.0f) & 0xffffu)};
  }
}

/// Packs one word's worth of elements, rounding each once.
template <typename T>
LOGPJIT_DEVICE Word pack(const float* values) {
  if constexpr (sizeof(T) == 4) {
    return Word{bits_of(values[0]), bits_of(values[1]), bits_of(values[2]),
                bits_of(values[3])};
  } else {
    u32 parts[4];
    LOGPJIT_UNROLL
    for (int i = 0; i < 4; ++i) {
      parts[i] = pack_pair<T>(values[2 * i], values[2 * i + 1]);
    }
    return Word{parts[0], parts[1], parts[2], parts[3]};
  }
}

}  // namespace logpjit::device
