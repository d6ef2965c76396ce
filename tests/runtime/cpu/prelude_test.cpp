// The host's prelude: it offers what the device's does, and its arithmetic is
// right to the bit.
#include "templates/prelude/host.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include "tests/runtime/cpu/host_kernels.hpp"

namespace logpjit::device {
namespace {

using runtime::testing::read_text;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

std::set<std::string> names_in(const std::string& file) {
  const std::string text =
      read_text(LOGPJIT_SOURCE_DIR "/templates/prelude/" + file);
  const std::regex declaration(
      R"((?:LOGPJIT_DEVICE [\w:]+(?: \w+)*\*? |#define |struct (?:alignas\(\d+\) )?|using )(\w+))");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end;
       at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

TEST(Prelude, OffersTheNamesOfTheDevicePrelude) {
  const std::set<std::string> host = names_in("host.h");
  const std::set<std::string> device = names_in("device.h");
  EXPECT_GT(device.size(), 40u);
  for (const std::string& name : device) {
    if (name == "shared_address") continue;  // of the device prelude alone
    EXPECT_TRUE(host.contains(name)) << name;
  }
}

TEST(Prelude, Exp2IsNearAndEdgesAreExact) {
  EXPECT_EQ(exp2_approx(0.0f), 1.0f);
  EXPECT_EQ(exp2_approx(-0.0f), 1.0f);
  EXPECT_EQ(exp2_approx(0x1p-149f), 1.0f);
  EXPECT_EQ(exp2_approx(-126.0f), 0x1p-126f);
  EXPECT_EQ(exp2_approx(std::nextafter(-126.0f, -200.0f)), 0.0f);
  EXPECT_EQ(exp2_approx(-kInfinity), 0.0f);
  EXPECT_EQ(exp2_approx(-3e38f), 0.0f);
  EXPECT_EQ(exp2_approx(128.0f), kInfinity);
  EXPECT_EQ(exp2_approx(kInfinity), kInfinity);
  EXPECT_LT(exp2_approx(std::nextafter(128.0f, 0.0f)), kInfinity);
  EXPECT_TRUE(std::isnan(exp2_approx(kNan)));
  for (int n = -126; n < 128; ++n) {
    EXPECT_EQ(exp2_approx(float(n)), std::ldexp(1.0f, n));
  }
  double worst = 0;
  for (u32 bits = 0; bits < 0x43000000u; bits += 641) {
    for (const u32 sign : {0u, 0x80000000u}) {
      const float x = float_of(bits | sign);
      if (x < -126.0f) continue;
      const double exact = std::exp2(double{x});
      const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
      worst = std::max(worst, std::abs(exp2_approx(x) - exact) / ulp);
    }
  }
  EXPECT_LT(worst, 0.54);
}

TEST(Prelude, MaxPropagatesNanAndOrdersZeros) {
  EXPECT_EQ(max_nan(1, 2), 2);
  EXPECT_EQ(max_nan(2, 1), 2);
  EXPECT_EQ(max_nan(-kInfinity, -kInfinity), -kInfinity);
  EXPECT_FALSE(std::signbit(max_nan(-0.0f, 0.0f)));
  EXPECT_FALSE(std::signbit(max_nan(0.0f, -0.0f)));
  EXPECT_TRUE(std::signbit(max_nan(-0.0f, -0.0f)));
  for (const float other : {1.0f, kInfinity, -kInfinity, kNan}) {
    EXPECT_TRUE(std::isnan(max_nan(kNan, other)));
    EXPECT_TRUE(std::isnan(max_nan(other, kNan)));
  }
}

TEST(Prelude, HalfsSurviveTheRoundTrip) {
  for (u32 bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<u16>(bits);
    const float value = float_of_half(half);
    if (std::isnan(value)) {
      EXPECT_GT(bits & 0x7fff, 0x7c00u);
      EXPECT_EQ(half_bits_of(value), 0x7fff);
    } else {
      EXPECT_EQ(half_bits_of(value), half);
    }
  }
  EXPECT_EQ(float_of_half(0x0001), 0x1p-24f);
  EXPECT_EQ(float_of_half(0x83ff), -0x3ffp-24f);
  EXPECT_EQ(float_of_half(0x0400), 0x1p-14f);
  EXPECT_EQ(float_of_half(0x7bff), 65504.0f);
  EXPECT_EQ(float_of_half(0xfc00), -kInfinity);
}

/// Nearest of all finite halves to `value`, ties to the even one, overflow at
/// the half beyond the largest.
u16 nearest_half(float value) {
  const u16 sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(double{value});
  u32 low = 0;
  u32 high = 0x7c00;
  const auto as_double = [](u32 bits) {
    return bits == 0x7c00 ? 65536.0
                          : double{float_of_half(static_cast<u16>(bits))};
  };
  while (high - low > 1) {
    const u32 middle = (low + high) / 2;
    (as_double(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - as_double(low);
  const double above = as_double(high) - magnitude;
  const bool up = above < below || (above == below && high % 2 == 0);
  return static_cast<u16>(sign | (up ? high : low));
}

TEST(Prelude, HalfRoundingIsToNearestEven) {
  EXPECT_EQ(half_bits_of(65519.996f), 0x7bff);
  EXPECT_EQ(half_bits_of(65520.0f), 0x7c00);
  EXPECT_EQ(half_bits_of(-kInfinity), 0xfc00);
  EXPECT_EQ(half_bits_of(0x1p-25f), 0x0000);
  EXPECT_EQ(half_bits_of(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
  EXPECT_EQ(half_bits_of(-0.0f), 0x8000);
  EXPECT_EQ(half_bits_of(0x1p-149f), 0x0000);
  for (u32 bits = 0; bits < 0x7f800000u; bits += 9973) {
    for (const u32 sign : {0u, 0x80000000u}) {
      const float value = float_of(bits | sign);
      ASSERT_EQ(half_bits_of(value), nearest_half(value)) << value;
    }
  }
  // Every tie, and its neighbours on both sides.
  for (u32 half = 0; half < 0x7bff; ++half) {
    const float tie =
        static_cast<float>((double{float_of_half(static_cast<u16>(half))} +
                            float_of_half(static_cast<u16>(half + 1))) /
                           2);
    for (const float value :
         {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, kInfinity)}) {
      ASSERT_EQ(half_bits_of(value), nearest_half(value)) << value;
    }
  }
}

TEST(Prelude, PackingPutsTheLowHalfFirst) {
  EXPECT_EQ(pack_fp16(1.0f, -2.0f), 0xc0003c00u);
  EXPECT_EQ(pack_bf16(1.0f, -2.0f), 0xc0003f80u);
  EXPECT_EQ(pack_bf16(kNan, float_of(0xffffffffu)), 0x7fff7fffu);
  EXPECT_EQ(pack_bf16(kInfinity, 3.4e38f), 0x7f807f80u);
  // Ties go to the even neighbour.
  EXPECT_EQ(pack_bf16(float_of(0x3f808000u), float_of(0x3f818000u)),
            0x3f823f80u);
  EXPECT_EQ(pack_bf16(float_of(0x3f808001u), float_of(0x3f817fffu)),
            0x3f813f81u);
}

TEST(Prelude, FmaRoundsOnce) {
  const float a = 1 + 0x1p-23f;
  EXPECT_EQ(fma(a, a, -(1 + 0x1p-22f)), 0x1p-46f);
  EXPECT_EQ(divide(1.0f, 3.0f), 0x1.555556p-2f);
}

TEST(Prelude, NothingIsContractedInAKernel) {
  // a * a - c is 0 unless the multiply and the subtraction are fused.
  const auto kernel = runtime::testing::build(R"(
    const float x = a.in[0];
    a.out[0] = x * x - a.in[1];
    a.out[1] = fma(x, x, -a.in[1]);
  )");
  const float in[2] = {1 + 0x1p-23f, 1 + 0x1p-22f};
  float out[2] = {-1, -1};
  runtime::testing::launch(*kernel, {}, {.in = in, .out = out});
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_EQ(out[1], 0x1p-46f);
}

}  // namespace
}  // namespace logpjit::device
