// Wrong calls: refused by name before anything is launched or written. They
// need no compiler: one that is reached would not be there.
#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "logpjit/error.hpp"
#include "tests/conformance/harness.hpp"

namespace logpjit::tests {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kVocab = 40;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Options without_compiler() {
  Options options;
  options.device = "cpu";
  options.host_compiler = "/nonexistent/c++";
  options.fallback = FallbackUse::kNever;
  return options;
}

/// Correct calls of each kind, to be spoilt.
class Refusals : public testing::Test {
 protected:
  Refusals()
      : runtime_(without_compiler()),
        device_(runtime_.engine().device()),
        logits_(send(device_, random_matrix(DType::kBf16, kRows, kVocab, 2, 1),
                     {.row_stride = kVocab + 8})),
        ids_(send_ids(device_, {1, 2, 3, 4}, 1)),
        upstream_(send(device_, {1, 1, 1, 1})),
        out_(poisoned_values(device_, kRows, 1)),
        gradient_(tuning::poisoned_tensor(device_, DType::kBf16,
                                          std::vector{kRows, kVocab})) {
    forward_ = {.logits = logits_.view,
                .ids = ids_.view,
                .logp = out_.logp.view,
                .max = out_.max.view,
                .sum = out_.sum.view};
    backward_ = {.logits = logits_.view,
                 .ids = ids_.view,
                 .max = out_.lse.view,
                 .sum = out_.squares.view,
                 .upstream = {.logp = upstream_.view},
                 .gradient = {.tensor = gradient_.view}};
    kl_ = {.inputs = {.student = logits_.view, .teacher = logits_.view},
           .kl = out_.logp.view};
  }

  template <typename Call>
  using Spoil = std::function<void(Call&)>;
  template <typename Call>
  struct Wrong {
    const char* what;
    Spoil<Call> spoil;
    const char* message;
  };

  template <typename Call, typename Start>
  void expect_refused(const std::vector<Wrong<Call>>& table, const Call& right,
                      Start&& start) {
    for (const Wrong<Call>& wrong : table) {
      SCOPED_TRACE(wrong.what);
      Call call = right;
      wrong.spoil(call);
      try {
        start(call);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.message();
        EXPECT_THAT(error.message(), HasSubstr(wrong.message));
      }
      for (const auto* output :
           {&out_.logp, &out_.max, &out_.sum, &gradient_}) {
        for (const std::byte byte : tuning::download(device_, *output)) {
          ASSERT_EQ(byte, std::byte{tuning::kPoison}) << "something is written";
        }
      }
    }
    EXPECT_EQ(runtime_.counters().compiled, 0u);
  }

  Runtime runtime_;
  runtime::Device& device_;
  tuning::DeviceTensor logits_, ids_, upstream_;
  Values out_;
  tuning::DeviceTensor gradient_;
  RowForward forward_;
  RowBackward backward_;
  KlForward kl_;
};

/// The view with another first size, and so on.
TensorView reshaped(TensorView view, std::int64_t rows, std::int64_t columns) {
  view.rank = 2;
  view.shape = {rows, columns};
  view.strides = {columns, 1};
  return view;
}

TEST_F(Refusals, Values) {
  using Call = RowForward;
  const std::vector<Wrong<Call>> table{
      {"T = 0", [](Call& c) { c.transform.temperature = 0; }, "temperature"},
      {"T < 0", [](Call& c) { c.transform.temperature = -1; }, "temperature"},
      {"T NaN", [](Call& c) { c.transform.temperature = kNaN; }, "temperature"},
      {"T inf", [](Call& c) { c.transform.temperature = kInf; }, "temperature"},
      {"cap < 0", [](Call& c) { c.transform.softcap = -1; }, "softcap"},
      {"cap inf", [](Call& c) { c.transform.softcap = kInf; }, "softcap"},
      {"no logits", [](Call& c) { c.logits = {}; }, "logits: is required"},
      {"null", [](Call& c) { c.logits.data = nullptr; }, "null pointer"},
      {"odd address",
       [](Call& c) {
         c.logits.data = static_cast<std::byte*>(c.logits.data) + 1;
       },
       "logits: address"},
      {"another device",
       [](Call& c) {
         c.ids.device = {DeviceKind::kCuda, 0};
       },
       "ids: lies on"},
      {"int logits", [](Call& c) { c.logits.dtype = DType::kInt32; },
       "logits: dtype int32"},
      {"float ids", [](Call& c) { c.ids.dtype = DType::kFp32; },
       "ids: dtype fp32"},
      {"bf16 logp", [](Call& c) { c.logp.dtype = DType::kBf16; },
       "logp: dtype bf16"},
      {"K = 0", [](Call& c) { c.ids = reshaped(c.ids, kRows, 0); },
       "ids: 0 ids per row"},
      {"K = 513", [](Call& c) { c.ids = reshaped(c.ids, kRows, 513); },
       "ids: 513 ids per row"},
      {"fewer ids", [](Call& c) { c.ids.shape[0] = 3; }, "ids: leading"},
      {"fewer outputs", [](Call& c) { c.max.shape[0] = 3; }, "max: leading"},
      {"vocab too large", [](Call& c) { c.vocab = kVocab + 1; }, "vocab"},
      {"vocab < 0", [](Call& c) { c.vocab = -1; }, "vocab"},
      {"nothing wanted", [](Call& c) { c.logp = c.max = c.sum = {}; },
       "outputs"},
      {"an output twice", [](Call& c) { c.sum = c.max; }, "sum: overlaps max"},
      {"an output over the logits", [](Call& c) { c.max.data = c.logits.data; },
       "max: overlaps logits"},
      {"an output over the ids", [](Call& c) { c.max.data = c.ids.data; },
       "max: overlaps ids"},
      {"no workspace",
       [](Call& c) {
         c.logits = reshaped(c.logits, kRows, kVocab / 2);
         c.logits.strides[1] = 2;
         c.options.copy_strided = true;
       },
       "workspace: is required"},
      {"a workspace too small",
       [this](Call& c) {
         c.logits = reshaped(c.logits, kRows, kVocab / 2);
         c.logits.strides[1] = 2;
         c.options.copy_strided = true;
         c.options.workspace = {.data = gradient_.view.data,
                                .bytes = workspace_bytes(c) - 1};
       },
       "workspace: 255 bytes are too few"},
      {"an allocation hook that refuses",
       [](Call& c) {
         c.logits = reshaped(c.logits, kRows, kVocab / 2);
         c.logits.strides[1] = 2;
         c.options.copy_strided = true;
         c.options.workspace.allocate =
             [](void*, std::size_t, CUstream_st*) -> void* { return nullptr; };
       },
       "workspace: `allocate` gave nothing"},
      {"an id that does not exist",
       [](Call& c) {
         c.vocab = 4;
         c.options.validate = true;
       },
       "ids: 4 at [3] is outside [0, 4)"},
      {"a row that does not exist",
       [this](Call& c) {
         c.ids = c.logp = c.sum = {};
         c.row_index = ids_.view;
         c.options.validate = true;
       },
       "row_index: 4 at [3] is outside [0, 4)"},
  };
  expect_refused(table, forward_,
                 [&](const Call& call) { forward(runtime_, call); });
}

TEST_F(Refusals, Gradients) {
  using Call = RowBackward;
  const std::vector<Wrong<Call>> table{
      {"T NaN", [](Call& c) { c.transform.temperature = kNaN; }, "temperature"},
      {"K = 513", [](Call& c) { c.ids = reshaped(c.ids, kRows, 513); }, "ids"},
      {"no upstream", [](Call& c) { c.upstream = {}; }, "upstream"},
      {"bf16 upstream", [](Call& c) { c.upstream.logp.dtype = DType::kBf16; },
       "upstream.logp: dtype"},
      {"fewer upstream", [](Call& c) { c.upstream.logp.shape[0] = 3; },
       "upstream.logp: leading"},
      {"no saved sum", [](Call& c) { c.sum = {}; }, "sum: is required"},
      {"entropy not saved",
       [](Call& c) { c.upstream.entropy = c.upstream.logp; },
       "entropy: is required"},
      {"a gradient of another dtype",
       [](Call& c) { c.gradient.tensor.dtype = DType::kFp16; },
       "gradient: dtype fp16"},
      {"a gradient of fewer rows",
       [](Call& c) { c.gradient.tensor.shape[0] = 3; }, "gradient: leading"},
      {"a gradient of shorter rows",
       [](Call& c) { c.gradient.tensor.shape[1] = kVocab - 1; },
       "gradient: row length"},
      {"a gradient over the logits",
       [](Call& c) { c.gradient.tensor = c.logits; },
       "gradient: overlaps logits"},
      {"a gradient over the upstream",
       [](Call& c) { c.gradient.tensor.data = c.upstream.logp.data; },
       "gradient: overlaps upstream.logp"},
      {"in place elsewhere", [](Call& c) { c.gradient.in_place = true; },
       "in_place needs"},
      {"in place with another stride",
       [](Call& c) {
         c.gradient = {.tensor = c.logits, .in_place = true};
         c.gradient.tensor.strides[0] = kVocab;
       },
       "in_place needs"},
      {"in place and added",
       [](Call& c) {
         c.gradient = {
             .tensor = c.logits, .accumulate = true, .in_place = true};
       },
       "exclude each other"},
      {"an id that does not exist",
       [](Call& c) {
         c.vocab = 4;
         c.options.validate = true;
       },
       "ids: 4 at [3]"},
  };
  expect_refused(table, backward_,
                 [&](const Call& call) { backward(runtime_, call); });
}

TEST_F(Refusals, Divergences) {
  using Call = KlForward;
  const std::vector<Wrong<Call>> table{
      {"T = 0", [](Call& c) { c.inputs.teacher_transform.temperature = 0; },
       "temperature"},
      {"other rows", [](Call& c) { c.inputs.teacher.shape[0] = 3; }, "teacher"},
      {"another row length", [](Call& c) { c.inputs.teacher.shape[1] = 30; },
       "teacher"},
      {"no output", [](Call& c) { c.kl = {}; }, "kl: is required"},
      {"an output over an input",
       [](Call& c) { c.kl.data = c.inputs.teacher.data; }, "kl: overlaps"},
      {"no chunk", [](Call& c) { c.options.chunk_rows = 0; }, "chunk_rows"},
  };
  expect_refused(table, kl_,
                 [&](const Call& call) { kl_forward(runtime_, call); });
}

TEST_F(Refusals, AStridedVocabularyIsUnsupportedWithAdvice) {
  RowForward call = forward_;
  call.logits = reshaped(call.logits, kRows, kVocab / 2);
  call.logits.strides[1] = 2;
  try {
    forward(runtime_, call);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.message(), HasSubstr("copy_strided"));
  }
}

}  // namespace
}  // namespace logpjit::tests
