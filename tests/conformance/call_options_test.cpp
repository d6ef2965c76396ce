// What a call may ask for beside its outputs: checks of ids, counts, copies of
// strided logits; and a softcap over masked logits.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "logpjit/error.hpp"
#include "tests/conformance/harness.hpp"
#include "tuning/numeric.hpp"

namespace logpjit::tests {
namespace {

using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

class CallOptionsOnDevice : public OnDevice {
 protected:
  std::int64_t count_of(const tuning::DeviceTensor& counter) {
    const auto bytes = tuning::download(device(), counter);
    std::int64_t count = 0;
    std::memcpy(&count, bytes.data(), sizeof count);
    return count;
  }
};
LOGPJIT_ON_DEVICES_AND_FALLBACK(CallOptionsOnDevice);

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kVocab = 300;

TEST_P(CallOptionsOnDevice, IdsOutOfRangeAreCountedAndLeftAlone) {
  const auto logits =
      send(device(), random_matrix(DType::kBf16, kRows, kVocab, 2, 1));
  // Two ids that do not exist in a live row, two in a row without another, and
  // ids that callers ignore with.
  const std::vector<std::int64_t> numbers{1, kVocab, -100, 5,   -1, 7,
                                          2, 3,      -7,   999, 4,  -100};
  const auto ids = send_ids(device(), numbers, 2);
  const auto counter = tuning::upload(device(), DType::kInt64, std::vector{1l},
                                      std::vector<std::byte>(8));
  const Values out = poisoned_values(device(), kRows, 2);
  RowForward call{.logits = logits.view,
                  .ids = ids.view,
                  .logp = out.logp.view,
                  .max = out.max.view,
                  .sum = out.sum.view,
                  .out_of_range = counter.view};
  forward(runtime(), call);
  EXPECT_EQ(count_of(counter), 4);
  forward(runtime(), call);
  EXPECT_EQ(count_of(counter), 8) << "it is added to";
  const auto logp = tuning::download_floats(device(), out.logp);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool exists = numbers[i] >= 0 && numbers[i] < kVocab;
    EXPECT_EQ(logp[i] == 0.0f, !exists) << numbers[i];
  }
  call.ignore_id = kVocab;
  forward(runtime(), call);
  EXPECT_EQ(count_of(counter), 13) << "-100 is out of range then";

  call.options.validate = true;
  try {
    forward(runtime(), call);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("ids: -100 at [1, 0]"));
  }
  EXPECT_EQ(count_of(counter), 13) << "nothing was launched";
}

TEST_P(CallOptionsOnDevice, ValidationLooksAtStridedIdsOfEitherType) {
  const auto logits =
      send(device(), random_matrix(DType::kBf16, 3, kVocab, 2, 1));
  // Every second number is none of the ids.
  const std::vector<std::int32_t> numbers{1, -5, 2, -5, 299, -5};
  auto ids = tuning::upload(device(), DType::kInt32, std::vector{3l},
                            std::as_bytes(std::span(numbers)).first(12));
  ids = tuning::upload(device(), DType::kInt32, std::vector{6l},
                       std::as_bytes(std::span(numbers)));
  ids.view.shape[0] = 3;
  ids.view.strides[0] = 2;
  const Values out = poisoned_values(device(), 3, 1);
  RowForward call{.logits = logits.view,
                  .ids = ids.view,
                  .logp = out.logp.view,
                  .options = {.validate = true}};
  forward(runtime(), call);
  call.vocab = 299;
  EXPECT_THROW(forward(runtime(), call), Error);
}

/// Logits [rows, vocab] that lie as [vocab, rows] in memory.
tuning::DeviceTensor send_transposed(runtime::Device& device,
                                     const HostMatrix& matrix) {
  HostMatrix turned{matrix.dtype, matrix.columns, matrix.rows, {}};
  for (std::int64_t j = 0; j < matrix.columns; ++j) {
    for (std::int64_t n = 0; n < matrix.rows; ++n) {
      turned.values.push_back(
          matrix.values[static_cast<std::size_t>(n * matrix.columns + j)]);
    }
  }
  tuning::DeviceTensor tensor = send(device, turned);
  tensor.view.shape = {matrix.rows, matrix.columns};
  tensor.view.strides = {1, matrix.rows};
  return tensor;
}

TEST_P(CallOptionsOnDevice, StridedVocabulariesAreCopiedWhenAsked) {
  for (const DType dtype : {DType::kBf16, DType::kFp32}) {
    const HostMatrix matrix = random_matrix(dtype, kRows, kVocab, 2, 1);
    const auto ids = send_ids(device(), random_ids(kRows, kVocab, 2), 1);
    const auto upstream = send(device(), random_floats(kRows, 3));
    std::vector<std::uint32_t> logp;
    std::vector<double> gradients;
    for (const bool strided : {false, true}) {
      const auto logits =
          strided ? send_transposed(device(), matrix) : send(device(), matrix);
      const Values out = poisoned_values(device(), kRows, 1);
      const auto gradient = send(device(), matrix);
      RowWithGrad call{.values = {.logits = logits.view,
                                  .ids = ids.view,
                                  .logp = out.logp.view,
                                  .max = out.max.view,
                                  .sum = out.sum.view},
                       .upstream = {.logp = upstream.view},
                       .gradient = {.tensor = gradient.view}};
      call.values.options.copy_strided = true;
      const std::size_t bytes = workspace_bytes(call);
      EXPECT_EQ(bytes > 0, strided);
      const auto memory = device().allocate(bytes);
      call.values.options.workspace = {.data = memory->data(), .bytes = bytes};
      forward_with_grad(runtime(), call);
      if (!strided) {
        logp = bits(device(), out.logp);
        gradients = fetch(device(), gradient);
      }
      EXPECT_EQ(bits(device(), out.logp), logp);
      EXPECT_EQ(fetch(device(), gradient), gradients);
    }
  }
}

TEST_P(CallOptionsOnDevice, BothSidesOfADivergenceFromOneAllocation) {
  const HostMatrix student = random_matrix(DType::kBf16, kRows, kVocab, 2, 1);
  const HostMatrix teacher = random_matrix(DType::kFp32, kRows, kVocab, 2, 2);
  struct Hook {
    runtime::Device* device;
    std::vector<std::unique_ptr<runtime::Buffer>> buffers;
  } hook{&device(), {}};
  std::vector<std::uint32_t> kl;
  for (const bool strided : {false, true}) {
    const auto s =
        strided ? send_transposed(device(), student) : send(device(), student);
    const auto t =
        strided ? send_transposed(device(), teacher) : send(device(), teacher);
    const Values out = poisoned_values(device(), kRows, 1);
    KlForward call{.inputs = {.student = s.view, .teacher = t.view},
                   .kl = out.logp.view};
    call.options.copy_strided = true;
    call.options.workspace.context = &hook;
    call.options.workspace.allocate = [](void* context, std::size_t bytes,
                                         CUstream_st*) {
      auto& made = *static_cast<Hook*>(context);
      made.buffers.push_back(made.device->allocate(bytes));
      return made.buffers.back()->data();
    };
    kl_forward(runtime(), call);
    EXPECT_EQ(hook.buffers.size(), strided ? 1u : 0u);
    if (strided) {
      EXPECT_EQ(hook.buffers[0]->size(), workspace_bytes(call));
    }
    if (!strided) kl = bits(device(), out.logp);
    EXPECT_EQ(bits(device(), out.logp), kl);
  }
}

TEST_P(CallOptionsOnDevice, ASoftcapLeavesMaskedLogitsMasked) {
  HostMatrix matrix = random_matrix(DType::kFp32, 4, kVocab, 2, 1);
  for (std::int64_t j = 0; j < kVocab; ++j) {
    if (j % 3 == 0) matrix.at(0, j) = -kInf;
    if (j != 7) matrix.at(1, j) = -kInf;
    matrix.at(2, j) = -kInf;
  }
  matrix.at(3, 5) = kInf;
  const std::vector<std::int64_t> targets{1, 7, 2, 3};
  const auto logits = send(device(), matrix);
  const auto ids = send_ids(device(), targets, 1);
  const auto upstream = send(device(), {1, 2, 3, 4});
  const Values out = poisoned_values(device(), 4, 1);
  const auto gradient = send(device(), matrix);
  const Transform transform{.temperature = 2, .softcap = 5};
  forward(runtime(), {.logits = logits.view,
                      .ids = ids.view,
                      .transform = transform,
                      .logp = out.logp.view,
                      .entropy = out.entropy.view,
                      .max = out.max.view,
                      .sum = out.sum.view});
  backward(runtime(),
           {.logits = logits.view,
            .ids = ids.view,
            .transform = transform,
            .max = out.max.view,
            .sum = out.sum.view,
            .entropy = out.entropy.view,
            .upstream = {.logp = upstream.view, .entropy = upstream.view},
            .gradient = {.tensor = gradient.view}});
  tuning::Problem problem = problem_of(matrix);
  tuning::set_ids(problem, targets, 1);
  problem.temperature = {2};
  problem.softcap = 5;
  const std::vector<double> weights{1, 2, 3, 4};
  const auto logp = tuning::download_floats(device(), out.logp);
  const auto entropy = tuning::download_floats(device(), out.entropy);
  const auto columns = fetch(device(), gradient);
  const auto expect_same = [](double got, double want, const char* what) {
    EXPECT_EQ(std::isnan(got), std::isnan(want)) << what;
    if (!std::isnan(want)) {
      EXPECT_NEAR(got, want, 2e-6) << what;
    }
  };
  for (std::int64_t row = 0; row < 4; ++row) {
    SCOPED_TRACE(row);
    const tuning::RowValues right = tuning::reference_values(problem, row);
    const auto at = static_cast<std::size_t>(row);
    expect_same(logp[at], right.logp[0], "logp");
    expect_same(entropy[at], right.entropy, "entropy");
    const auto want =
        tuning::reference_gradient(problem, {weights, weights, {}, {}}, row);
    for (std::int64_t j = 0; j < kVocab; ++j) {
      expect_same(columns[static_cast<std::size_t>(row * kVocab + j)],
                  want[static_cast<std::size_t>(j)], "gradient");
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(logp[1], 0.0f) << "one live column";
  EXPECT_EQ(entropy[1], 0.0f);
}

}  // namespace
}  // namespace logpjit::tests
