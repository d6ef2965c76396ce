// Every 16-bit pattern, every rounding tie, every edge of the formats.
#include "tuning/numeric.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "logpjit/error.hpp"
#include "tuning/sum.hpp"

namespace logpjit::tuning {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
double value_of(T bits, DType dtype) {
  return widen(&bits, dtype);
}

std::uint16_t bits_of(double value, DType dtype) {
  std::uint16_t bits = 0;
  narrow(value, dtype, &bits);
  return bits;
}

TEST(Numeric, KnownBf16Values) {
  EXPECT_EQ(value_of<std::uint16_t>(0x3f80, DType::kBf16), 1.0);
  EXPECT_EQ(value_of<std::uint16_t>(0xc0a0, DType::kBf16), -5.0);
  EXPECT_EQ(value_of<std::uint16_t>(0x0001, DType::kBf16), std::ldexp(1, -133));
  EXPECT_EQ(value_of<std::uint16_t>(0xff80, DType::kBf16), -kInfinity);
}

TEST(Numeric, KnownFp16Values) {
  EXPECT_EQ(value_of<std::uint16_t>(0x3c00, DType::kFp16), 1.0);
  EXPECT_EQ(value_of<std::uint16_t>(0xfbff, DType::kFp16), -65504.0);
  EXPECT_EQ(value_of<std::uint16_t>(0x0001, DType::kFp16), std::ldexp(1, -24));
  EXPECT_EQ(value_of<std::uint16_t>(0x0400, DType::kFp16), std::ldexp(1, -14));
  EXPECT_EQ(value_of<std::uint16_t>(0x7c00, DType::kFp16), kInfinity);
}

class EveryPattern : public testing::TestWithParam<DType> {};

TEST_P(EveryPattern, ComesBackUnchanged) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const double value = value_of(pattern, GetParam());
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(value_of(bits_of(value, GetParam()), GetParam())));
      continue;
    }
    ASSERT_EQ(bits_of(value, GetParam()), pattern) << bits;
    ASSERT_EQ(rounded(value, GetParam()), value) << bits;
  }
}

TEST_P(EveryPattern, RoundsToTheNearestTiesToEven) {
  const std::uint32_t largest = GetParam() == DType::kBf16 ? 0x7f7f : 0x7bff;
  for (std::uint32_t bits = 0; bits < largest; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits);
    const auto high = static_cast<std::uint16_t>(bits + 1);
    const double below = value_of(low, GetParam());
    const double above = value_of(high, GetParam());
    const double middle = below + (above - below) / 2;
    const std::uint16_t even = bits % 2 == 0 ? low : high;
    ASSERT_EQ(bits_of(middle, GetParam()), even) << bits;
    ASSERT_EQ(bits_of(std::nextafter(middle, 0), GetParam()), low) << bits;
    ASSERT_EQ(bits_of(std::nextafter(middle, kInfinity), GetParam()), high);
    ASSERT_EQ(bits_of(-middle, GetParam()), even | 0x8000) << bits;
    ASSERT_EQ(spacing(below, GetParam()), above - below) << bits;
  }
}

INSTANTIATE_TEST_SUITE_P(Numeric, EveryPattern,
                         testing::Values(DType::kBf16, DType::kFp16));

TEST(Numeric, OverflowIsInfinite) {
  EXPECT_EQ(rounded(65519.999, DType::kFp16), 65504.0);
  EXPECT_EQ(rounded(65520, DType::kFp16), kInfinity);
  EXPECT_EQ(rounded(-1e300, DType::kFp32), -kInfinity);
  EXPECT_EQ(rounded(3.4e38, DType::kBf16), kInfinity);
  EXPECT_EQ(rounded(kInfinity, DType::kBf16), kInfinity);
}

TEST(Numeric, Float32RoundsAsTheHardwareDoes) {
  for (double value : {0.1, -1e-40, 1e-46, 3.4028235677973366e38, 16777217.0}) {
    EXPECT_EQ(rounded(value, DType::kFp32), static_cast<float>(value));
  }
}

TEST(Numeric, ZeroKeepsItsSign) {
  EXPECT_EQ(bits_of(-0.0, DType::kBf16), 0x8000);
  EXPECT_EQ(bits_of(-1e-60, DType::kFp16), 0x8000);
}

TEST(Numeric, SpacingOfWhatIsNotFiniteIsNaN) {
  EXPECT_TRUE(std::isnan(spacing(kInfinity, DType::kFp32)));
  EXPECT_EQ(spacing(0, DType::kFp32), std::ldexp(1, -149));
  EXPECT_EQ(spacing(-1.5, DType::kFp32), std::ldexp(1, -23));
}

TEST(Numeric, RowsAreReadWithStrides) {
  const float stored[] = {1, 2, 3, 4, 5, 6};
  std::vector<double> values;
  widen_row(stored + 1, DType::kFp32, 3, 2, values);
  EXPECT_EQ(values, (std::vector<double>{2, 4, 6}));
  widen_row(stored, DType::kFp32, 0, 1, values);
  EXPECT_TRUE(values.empty());
}

TEST(Numeric, IdsAreNotFloats) {
  const std::int32_t id = 3;
  EXPECT_THROW(widen(&id, DType::kInt32), Error);
  EXPECT_THROW(rounded(1, DType::kInt64), Error);
}

TEST(Sum, KeepsWhatAdditionLoses) {
  Sum sum;
  sum.add(1e16);
  for (int i = 0; i < 1000; ++i) sum.add(1);
  sum.add(-1e16);
  EXPECT_EQ(sum.value(), 1000);
}

}  // namespace
}  // namespace logpjit::tuning
