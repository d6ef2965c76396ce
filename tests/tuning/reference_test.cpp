// The whole-tensor reference: strides, masks, and a trained model's logits.
#include "tuning/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "tuning/json_node.hpp"
#include "tuning/npy.hpp"

namespace logpjit::tuning {
namespace {

const std::string kData = LOGPJIT_SOURCE_DIR "/tests/conformance/data/";

JsonNode read_json(const std::string& file) {
  std::ifstream in(file);
  return JsonNode::parse(std::string{std::istreambuf_iterator<char>(in), {}});
}

TensorView bf16_view(const NpyArray& array) {
  return TensorView::contiguous(array.bytes.data(), DType::kBf16,
                                {array.shape[0], array.shape[1]});
}

TEST(Reference, TrainedModelValues) {
  const auto logits = read_npy(kData + "lm_logits_bf16.npy");
  const auto ids = read_npy(kData + "lm_ids.npy");
  const auto expected = read_json(kData + "lm_expected.json");
  Problem problem = problem_of(bf16_view(logits), 32000);
  set_ids(problem,
          read_ids(TensorView::contiguous(ids.bytes.data(), DType::kInt64,
                                          {ids.shape[0]})),
          1);
  const auto logp = flat_numbers(expected.at("logp"));
  const auto entropy = flat_numbers(expected.at("entropy"));
  ASSERT_EQ(problem.rows, static_cast<std::int64_t>(logp.size()));
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    const auto values = reference_values(problem, row);
    const auto i = static_cast<std::size_t>(row);
    EXPECT_NEAR(values.logp[0], logp[i], 1e-13);
    EXPECT_NEAR(values.entropy, entropy[i], 1e-13);
  }
}

TEST(Reference, TrainedModelDivergences) {
  const auto logits = read_npy(kData + "lm_logits_bf16.npy");
  const auto other = read_npy(kData + "lm_teacher_bf16.npy");
  const auto expected = read_json(kData + "lm_expected.json");
  const Problem student = problem_of(bf16_view(logits), 32000);
  const Problem teacher = problem_of(bf16_view(other), 32000);
  const auto forward = flat_numbers(expected.at("kl_forward"));
  const auto reverse = flat_numbers(expected.at("kl_reverse"));
  ASSERT_EQ(forward.size(), 16u);
  for (std::size_t row = 0; row < forward.size(); ++row) {
    const auto n = static_cast<std::int64_t>(row);
    const auto s = student.distribution(n);
    const auto t = teacher.distribution(n);
    EXPECT_NEAR(row_kl(t, s), forward[row], 1e-13);
    EXPECT_NEAR(row_kl(s, t), reverse[row], 1e-13);
  }
}

TensorView view_3d(const float* data, std::int64_t outer, std::int64_t inner,
                   std::int64_t step) {
  TensorView view = TensorView::contiguous(data, DType::kFp32, {2, 2, 2});
  view.strides = {outer, inner, step, 0};
  return view;
}

TEST(Reference, TwoRowStridesAndAStridedVocabulary) {
  const float data[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  std::vector<double> values;
  problem_of(view_3d(data, 8, 2, 1), 2).logits(2, values);
  EXPECT_EQ(values, (std::vector<double>{8, 9}));
  problem_of(view_3d(data, 1, 8, 4), 2).logits(3, values);
  EXPECT_EQ(values, (std::vector<double>{9, 13}));
}

TEST(Reference, PaddingColumnsAreNotRead) {
  const float data[] = {1, 2, 100, 3, 4, 100};
  Problem problem =
      problem_of(TensorView::contiguous(data, DType::kFp32, {2, 3}), 2);
  set_ids(problem, {0, 2}, 1);
  const double right = -std::log1p(std::exp(1));
  EXPECT_DOUBLE_EQ(reference_values(problem, 0).logp[0], right);
  EXPECT_EQ(reference_values(problem, 1).logp[0], 0);
  EXPECT_EQ(reference_gradient(problem, {{1, 1}, {}, {}, {}}, 1),
            std::vector<double>(2, 0));
}

TEST(Reference, MaskedRowsGiveZeros) {
  const float data[] = {1, 2, NAN, 4};
  Problem problem =
      problem_of(TensorView::contiguous(data, DType::kFp32, {2, 2}), 2);
  set_ids(problem, {0, 1, 0, 1}, 2);
  problem.row_mask = {1, 0};
  EXPECT_EQ(reference_values(problem, 1).logp, std::vector<double>(2, 0));
  EXPECT_EQ(reference_values(problem, 1).entropy, 0);
  const Upstream upstream{{1, 1, NAN, 1}, {1, 1}, {}, {}};
  EXPECT_EQ(reference_gradient(problem, upstream, 1),
            std::vector<double>(2, 0));
  EXPECT_NE(reference_gradient(problem, upstream, 0),
            std::vector<double>(2, 0));
}

TEST(Reference, TemperaturePerRow) {
  const float data[] = {0, 2, 0, 2};
  Problem problem =
      problem_of(TensorView::contiguous(data, DType::kFp32, {2, 2}), 2);
  set_ids(problem, {0, 0}, 1);
  problem.temperature = {1, 2};
  EXPECT_DOUBLE_EQ(reference_values(problem, 0).logp[0],
                   -std::log1p(std::exp(2)));
  EXPECT_DOUBLE_EQ(reference_values(problem, 1).logp[0],
                   -std::log1p(std::exp(1)));
}

TEST(Reference, IdsOfBothTypesAndAnyStride) {
  const std::int32_t narrow_ids[] = {1, 9, -2, 9, 3, 9};
  TensorView view = TensorView::contiguous(narrow_ids, DType::kInt32, {3});
  view.strides[0] = 2;
  EXPECT_EQ(read_ids(view), (std::vector<std::int64_t>{1, -2, 3}));
  const std::int64_t wide = std::int64_t{1} << 40;
  EXPECT_EQ(read_ids(TensorView::contiguous(&wide, DType::kInt64, {1})),
            std::vector<std::int64_t>{wide});
}

}  // namespace
}  // namespace logpjit::tuning
