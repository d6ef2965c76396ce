// Case inputs in device memory: strides, offsets, poison, id types.
#include "tuning/case_inputs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/device/null_device.hpp"
#include "tests/tuning/case_samples.hpp"

namespace logpjit::tuning {
namespace {

/// The whole storage of a tensor on a device whose memory is the host's.
template <typename T>
std::vector<T> storage(const DeviceTensor& tensor) {
  std::vector<T> values(tensor.buffer->size() / sizeof(T));
  std::memcpy(values.data(), tensor.buffer->data(), values.size() * sizeof(T));
  return values;
}

class CaseInputs : public ::testing::Test {
 protected:
  testing::NullDevice device_;
};

TEST_F(CaseInputs, PoisonAroundAView) {
  Case one = sample_case("[2,2]", R"("logits":[[1,2],[3,4]],"ids":null,
      "extra":{"layout":{"storage_numel":8,"offset":1,"outside":"nan"}},
      "expected":{})");
  one.strides = {3, 1};
  const auto tensor = upload_logits(device_, one, one.logits, DType::kFp32);
  const auto values = storage<float>(tensor);
  ASSERT_EQ(values.size(), 8u);
  EXPECT_EQ(values[1], 1);
  EXPECT_EQ(values[2], 2);
  EXPECT_EQ(values[4], 3);
  EXPECT_EQ(values[5], 4);
  for (const std::size_t outside : {0, 3, 6, 7}) {
    EXPECT_TRUE(std::isnan(values[outside])) << outside;
  }
  EXPECT_EQ(tensor.view.strides[0], 3);
  EXPECT_EQ(static_cast<const float*>(tensor.view.data)[0], 1);
}

TEST_F(CaseInputs, AStridedVocabulary) {
  Case one = sample_case("[2,3]", R"("logits":[[1,2,3],[4,5,6]],"ids":null,
      "extra":{"layout":{"storage_numel":6,"offset":0,"outside":"none"}},
      "expected":{})");
  one.strides = {1, 2};
  const auto tensor = upload_logits(device_, one, one.logits, DType::kFp32);
  EXPECT_EQ(storage<float>(tensor), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST_F(CaseInputs, ThreeDimensions) {
  Case one = sample_case("[2,2,1]", R"("logits":[1,2,3,4],"ids":[0,0,0,0],
      "extra":{"layout":{"storage_numel":4,"offset":0,"outside":"none"}},
      "expected":{})");
  one.strides = {1, 2, 1};
  const auto tensor = upload_logits(device_, one, one.logits, DType::kFp32);
  EXPECT_EQ(storage<float>(tensor), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(tensor.view.rank, 3);
  EXPECT_EQ(row_shape(one), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(row_shape(one, 5), (std::vector<std::int64_t>{2, 2, 5}));
}

TEST_F(CaseInputs, OtherDtypes) {
  const Case one = sample_case("[1,2]", R"("logits":[[1,-2]],"ids":null,
      "extra":{},"expected":{})");
  const auto bf16 = upload_logits(device_, one, one.logits, DType::kBf16);
  EXPECT_EQ(storage<std::uint16_t>(bf16),
            (std::vector<std::uint16_t>{0x3f80, 0xc000}));
  const auto fp16 = upload_logits(device_, one, one.logits, DType::kFp16);
  EXPECT_EQ(storage<std::uint16_t>(fp16),
            (std::vector<std::uint16_t>{0x3c00, 0xc000}));
}

TEST_F(CaseInputs, IdsOfBothTypes) {
  const Case one = sample_case("[1,2]", R"("logits":[[1,2]],"ids":[[1,-100]],
      "extra":{"ids_per_row":2},"expected":{})");
  EXPECT_EQ(storage<std::int32_t>(upload_ids(device_, one, DType::kInt32)),
            (std::vector<std::int32_t>{1, -100}));
  EXPECT_EQ(storage<std::int64_t>(upload_ids(device_, one, DType::kInt64)),
            (std::vector<std::int64_t>{1, -100}));
}

TEST_F(CaseInputs, MaskedRowsHaveNoIndex) {
  const Case one = sample_case("[3,1]", R"("logits":[1,2,3],"ids":null,
      "extra":{"row_mask":[1,0,1]},"expected":{})");
  EXPECT_EQ(storage<std::int64_t>(upload_row_index(device_, one)),
            (std::vector<std::int64_t>{0, -1, 2}));
}

TEST_F(CaseInputs, LargeCasesAreSentInParts) {
  const Case one = sample_case("[40,1048576]",
                               R"("logits":{"gen":"mod","a":1,"b":0,"c":0,
      "m":64,"div":1,"sub":0},"ids":null,"extra":{},"expected":{})");
  const auto tensor = upload_logits(device_, one, one.logits, DType::kBf16);
  const auto* values = static_cast<const std::uint16_t*>(tensor.view.data);
  EXPECT_EQ(values[39 * 1048576 + 1048575], 0x421c);  // 39
  EXPECT_EQ(values[1048576], 0x3f80);
}

TEST_F(CaseInputs, EmptyTensorsHaveAnAddress) {
  const std::int64_t shape[] = {0, 3};
  const auto tensor = poisoned_tensor(device_, DType::kFp32, shape);
  EXPECT_NE(tensor.view.data, nullptr);
  EXPECT_TRUE(download(device_, tensor).empty());
}

}  // namespace
}  // namespace logpjit::tuning
