// Bytes that tensors share, anywhere in the address space.
#include "runtime/operations/footprint.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "logpjit/error.hpp"
#include "runtime/operations/check.hpp"

namespace logpjit::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();

TensorView view(std::uint64_t address, std::vector<std::int64_t> shape,
                std::vector<std::int64_t> strides, DType dtype = DType::kFp32) {
  TensorView made;
  made.data = reinterpret_cast<void*>(address);
  made.dtype = dtype;
  made.rank = static_cast<int>(shape.size());
  std::ranges::copy(shape, made.shape.begin());
  std::ranges::copy(strides, made.strides.begin());
  return made;
}
TensorView floats(std::uint64_t address, std::int64_t count) {
  return view(address, {count}, {1});
}

template <typename Check>
std::string failure_of(const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    return fmt::format("{}: {}", name(error.code()), error.message());
  }
  return "none";
}

std::string failure(const TensorView& output, const TensorView& input) {
  return failure_of([&] {
    check_no_overlap("op", {{"out", output}}, {{"in", input}});
  });
}

TEST(Footprint, AddressesBeyondAllAreRefusedByName) {
  const TensorView good = floats(64, 4);
  const TensorView beyond[] = {
      view(64, {2}, {kMost}),                      // in bytes
      view(64, {3}, {kMost}),                      // in elements
      view(64, {kMost}, {1}),                      //
      view(64, {kMost, 1}, {1, 1}, DType::kBf16),  //
      view(64, {2, 2}, {kMost / 2 + 1, kMost / 2 + 1}, DType::kBf16),
      view(64, {2, 2}, {-kMost, -kMost}, DType::kBf16),
      view(64, {2}, {-kMost - 1}, DType::kBf16),
      view(64, {2}, {kMost}, DType::kBf16),  // an element after the last
      view(64, {2}, {-32}),                  // below 0
      view(kEnd - 15, {8}, {1}),             // above the top
      view(kHalf, {std::int64_t{1} << 61}, {1}),
  };
  for (const TensorView& tensor : beyond) {
    SCOPED_TRACE(fmt::format("{} x {}", tensor.shape[0], tensor.strides[0]));
    const std::string what = "reaches beyond what an address can be";
    EXPECT_THAT(failure(tensor, good),
                AllOf(StartsWith("invalid_argument: op: out: shape ["),
                      HasSubstr(what)));
    EXPECT_THAT(failure(good, tensor),
                AllOf(StartsWith("invalid_argument: op: in: shape ["),
                      HasSubstr(what)));
  }
}

TEST(Footprint, MoreDimensionsThanAViewHasAreNotRead) {
  TensorView tensor = floats(64, 4);
  tensor.rank = TensorView::kMaxRank + 1;
  EXPECT_THAT(failure(floats(512, 4), tensor), HasSubstr("in: rank 5"));
}

/// Where differences of addresses do not fit into a signed number.
TEST(Footprint, HalvesOfTheAddressSpaceAreComparedRight) {
  const TensorView low = floats(64, 16);
  const TensorView high = floats(kHalf + 64, 16);
  const TensorView top = floats(kEnd - 127, 16);
  const TensorView across = floats(kHalf - 32, 16);
  for (const TensorView* output : {&low, &high, &top, &across}) {
    for (const TensorView* input : {&low, &high, &top, &across}) {
      SCOPED_TRACE(fmt::format("{} over {}", output->data, input->data));
      if (output == input) {
        EXPECT_THAT(failure(*output, *input), HasSubstr("out: overlaps in"));
      } else {
        EXPECT_EQ(failure(*output, *input), "none");
      }
    }
  }
  const TensorView nearly_all = view(64, {2}, {kMost / 4 - 64});
  EXPECT_EQ(failure(nearly_all, floats(kHalf + 64, 1)), "none");
  EXPECT_THAT(failure(nearly_all, floats(kHalf / 2, 1)),
              HasSubstr("out: overlaps in"));
}

TEST(Footprint, NeighboursShareNothing) {
  for (const std::uint64_t at : {std::uint64_t{1} << 20, kHalf}) {
    EXPECT_EQ(failure(floats(at, 4), floats(at - 16, 4)), "none");
    EXPECT_EQ(failure(floats(at, 4), floats(at + 16, 4)), "none");
    EXPECT_NE(failure(floats(at, 4), floats(at - 12, 4)), "none");
    EXPECT_NE(failure(floats(at, 4), floats(at + 12, 4)), "none");
    EXPECT_EQ(failure(floats(at, 4), view(at, {0, 4}, {4, 1})), "none");
    EXPECT_NE(failure(floats(at, 4), view(at + 64, {4}, {-5})), "none");
  }
}

/// A tensor's lowest and highest byte, element by element.
struct Bytes {
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = std::numeric_limits<std::int64_t>::min();
};
Bytes bytes_of(const TensorView& tensor) {
  Bytes bytes;
  const auto base =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
  for (std::int64_t i = 0; i < tensor.shape[0]; ++i) {
    for (std::int64_t j = 0; j < tensor.shape[1]; ++j) {
      const std::int64_t at =
          base + 4 * (i * tensor.strides[0] + j * tensor.strides[1]);
      bytes.low = std::min(bytes.low, at);
      bytes.high = std::max(bytes.high, at + 3);
    }
  }
  return bytes;
}
bool share(const TensorView& a, const TensorView& b) {
  const Bytes x = bytes_of(a);
  const Bytes y = bytes_of(b);
  return x.low <= y.high && y.low <= x.high;
}

/// However tensors lie to each other: in order or in none, in each other's
/// gaps, empty.
TEST(Footprint, AgreesWithElementByElement) {
  std::mt19937 random(11);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int refused = 0;
  constexpr int kTimes = 20000;
  for (int time = 0; time < kTimes; ++time) {
    std::vector<TensorView> tensors;
    for (int i = 0; i < 6; ++i) {
      tensors.push_back(view(static_cast<std::uint64_t>(4 * pick(500, 900)),
                             {pick(0, 3), pick(1, 3)},
                             {pick(-9, 9), pick(0, 4)}));
    }
    const auto outputs = static_cast<std::size_t>(pick(1, 5));
    bool shared = false;
    for (std::size_t i = 0; i < outputs; ++i) {
      for (std::size_t j = i + 1; j < tensors.size(); ++j) {
        shared = shared || share(tensors[i], tensors[j]);
      }
    }
    const std::string failed = failure_of([&] {
      Footprint footprint;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const Extent bytes = extent_of("op", {"t", tensors[i]});
        if (i < outputs) {
          footprint.write("t", bytes.begin, bytes.end);
        } else {
          footprint.read("t", bytes.begin, bytes.end);
        }
      }
      footprint.check("op");
    });
    ASSERT_EQ(failed != "none", shared) << "time " << time << ": " << failed;
    refused += shared;
  }
  EXPECT_GT(refused, kTimes / 10);
  EXPECT_LT(refused, kTimes - kTimes / 10);
}

TEST(Footprint, WhatIsWrittenInPlaceIsNoInput) {
  Footprint footprint;
  footprint.read("logits", 64, 128);
  footprint.read("ids", 128, 160);
  footprint.take_first_read();
  footprint.write("gradient", 64, 128);
  footprint.check("op");
  footprint.write("max", 120, 124);
  EXPECT_THAT(failure_of([&] { footprint.check("op"); }),
              HasSubstr("max: overlaps gradient"));
}

}  // namespace
}  // namespace logpjit::runtime
