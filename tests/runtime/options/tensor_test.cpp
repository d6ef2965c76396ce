// Contiguous views and row counts.
#include "logpjit/tensor.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "logpjit/error.hpp"

namespace logpjit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

template <typename Call>
std::string invalid(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(TensorView, DefaultIsNotGiven) {
  EXPECT_FALSE(TensorView().given());
  EXPECT_EQ(TensorView().leading(), 1);
}

TEST(TensorView, ContiguousIsRowMajor) {
  const float data[24] = {};
  const DeviceId device{DeviceKind::kCuda, 2};
  const TensorView view =
      TensorView::contiguous(data, DType::kFp32, {2, 3, 4}, device);
  EXPECT_TRUE(view.given());
  EXPECT_EQ(view.data, data);
  EXPECT_EQ(view.dtype, DType::kFp32);
  EXPECT_EQ(view.rank, 3);
  EXPECT_EQ(view.device, device);
  EXPECT_THAT(view.shape, ElementsAre(2, 3, 4, 0));
  EXPECT_THAT(view.strides, ElementsAre(12, 4, 1, 0));
}

TEST(TensorView, DeviceIsTheCpuUnlessSaid) {
  EXPECT_EQ(TensorView::contiguous(nullptr, DType::kBf16, {1}).device,
            (DeviceId{DeviceKind::kCpu, 0}));
}

TEST(TensorView, NoRowsStillHaveARowStride) {
  const TensorView view =
      TensorView::contiguous(nullptr, DType::kBf16, {0, 151936});
  EXPECT_THAT(view.strides, ElementsAre(151936, 1, 0, 0));
  EXPECT_EQ(view.leading(1), 0);
  EXPECT_TRUE(view.given());
}

TEST(TensorView, LeadingCountsRows) {
  const TensorView view =
      TensorView::contiguous(nullptr, DType::kFp16, {2, 3, 5, 7});
  EXPECT_EQ(view.leading(), 210);
  EXPECT_EQ(view.leading(1), 30);
  EXPECT_EQ(view.leading(3), 2);
  EXPECT_EQ(view.leading(4), 1);
  EXPECT_EQ(view.leading(9), 1) << "no dimension is left: the empty product";
}

TEST(TensorView, LeadingIsSixtyFourBit) {
  const TensorView view =
      TensorView::contiguous(nullptr, DType::kBf16, {70000, 70000, 2});
  EXPECT_EQ(view.leading(1), 4'900'000'000);
}

TEST(TensorView, LeadingRefusesToWrapAround) {
  TensorView view;  // a broadcast view: large shape, zero strides
  view.rank = 2;
  view.shape = {kLargest, 2, 0, 0};
  EXPECT_EQ(view.leading(1), kLargest);
  EXPECT_THAT(invalid([&] { view.leading(); }), HasSubstr("64 bits"));
}

TEST(TensorView, RankMustFit) {
  EXPECT_THAT(
      invalid([] { TensorView::contiguous(nullptr, DType::kFp32, {}); }),
      HasSubstr("0 dimensions"));
  EXPECT_THAT(invalid([] {
                TensorView::contiguous(nullptr, DType::kFp32, {1, 2, 3, 4, 5});
              }),
              HasSubstr("[1, 2, 3, 4, 5] has 5 dimensions"));
}

TEST(TensorView, NegativeDimensionsAreRefused) {
  EXPECT_THAT(invalid([] {
                TensorView::contiguous(nullptr, DType::kFp32, {2, -1});
              }),
              HasSubstr("dimension -1"));
}

TEST(TensorView, ShapesPastSixtyFourBitsAreRefused) {
  const auto too_large = [](std::initializer_list<std::int64_t> shape) {
    return invalid(
        [&] { TensorView::contiguous(nullptr, DType::kFp32, shape); });
  };
  EXPECT_THAT(too_large({kLargest, 2}), HasSubstr("64 bits"));
  EXPECT_THAT(too_large({std::int64_t{1} << 31, std::int64_t{1} << 31, 2}),
              HasSubstr("64 bits"));
  EXPECT_THAT(too_large({kLargest}), HasSubstr("64 bits"))
      << "the elements fit, their bytes do not";
}

}  // namespace
}  // namespace logpjit
