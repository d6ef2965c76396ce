// The fallback: when it serves, in which chunks, and that chunks change no bit.
#include "runtime/fallback/fallback.hpp"

#include <gmock/gmock.h>

#include "logpjit/error.hpp"
#include "runtime/fallback/rows_per_chunk.hpp"
#include "tests/conformance/harness.hpp"

namespace logpjit::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A runtime whose compiler is not there and whose cache is empty.
struct WithoutCompiler {
  std::vector<std::string> lines;
  std::unique_ptr<Runtime> runtime;

  explicit WithoutCompiler(FallbackUse use = FallbackUse::kWhenNeeded,
                           bool never_compile = false) {
    Options options;
    options.device = "cpu";
    options.host_compiler = "/nonexistent/c++";
    options.fallback = use;
    options.never_compile = never_compile;
    options.log = [this](const std::string& line) { lines.push_back(line); };
    runtime = std::make_unique<Runtime>(options);
  }
};

/// A call of logp and its gradient, and where the results go.
struct Call {
  tuning::DeviceTensor logits, ids, upstream, gradient;
  Values out;

  Call(runtime::Device& device, const HostMatrix& matrix,
       std::int64_t ids_per_row = 1)
      : logits(send(device, matrix)),
        ids(send_ids(device,
                     random_ids(matrix.rows * ids_per_row, matrix.columns, 2),
                     ids_per_row)),
        upstream(send_upstream(device, matrix.rows, ids_per_row)),
        gradient(send(device, matrix)),
        out(poisoned_values(device, matrix.rows, ids_per_row)) {}

  static tuning::DeviceTensor send_upstream(runtime::Device& device,
                                            std::int64_t rows,
                                            std::int64_t ids_per_row) {
    const std::vector<float> values = random_floats(rows * ids_per_row, 3);
    std::vector<std::int64_t> shape{rows};
    if (ids_per_row > 1) shape.push_back(ids_per_row);
    return tuning::upload(device, DType::kFp32, shape,
                          std::as_bytes(std::span(values)));
  }

  RowForward forward(const CallOptions& options = {}) const {
    return {.logits = logits.view,
            .ids = ids.view,
            .logp = out.logp.view,
            .entropy = out.entropy.view,
            .max = out.max.view,
            .sum = out.sum.view,
            .options = options};
  }
  RowBackward backward(const CallOptions& options = {}) const {
    return {.logits = logits.view,
            .ids = ids.view,
            .max = out.max.view,
            .sum = out.sum.view,
            .upstream = {.logp = upstream.view},
            .gradient = {.tensor = gradient.view},
            .options = options};
  }
};

TEST(FallbackChunk, RowsAreTheBudgetOverTheVocabularyAndAtLeastOne) {
  using runtime::rows_in_budget;
  const auto rows = [](int log2) {
    return rows_in_budget(151936, std::int64_t{1} << log2);
  };
  EXPECT_THAT((std::vector{rows(22), rows(24), rows(26), rows(27), rows(28)}),
              ElementsAre(27, 110, 441, 883, 1766));
  EXPECT_EQ(rows_in_budget(std::int64_t{1} << 30, std::int64_t{1} << 24), 1);
  EXPECT_EQ(rows_in_budget(17, 170), 10);
  EXPECT_EQ(runtime::chunk_budget(DeviceKind::kCuda), std::int64_t{1} << 27);
  EXPECT_EQ(runtime::chunk_budget(DeviceKind::kCpu), std::int64_t{1} << 24);
}

TEST(FallbackChoice, ServesWhereTheCompilerIsMissing) {
  const WithoutCompiler here;
  const Call call(here.runtime->engine().device(),
                  random_matrix(DType::kBf16, 5, 300, 2, 1));
  forward(*here.runtime, call.forward());
  forward(*here.runtime, call.forward());
  backward(*here.runtime, call.backward());
  EXPECT_EQ(here.runtime->counters().fallbacks, 3u);
  EXPECT_EQ(here.runtime->counters().compiled, 0u);
  EXPECT_THAT(here.lines, ElementsAre(HasSubstr("the fallback serves it"),
                                      HasSubstr("the fallback serves it")))
      << "one line for each kernel that cannot be built";
  EXPECT_THAT(here.lines[0], HasSubstr("/nonexistent/c++"));
}

TEST(FallbackChoice, PreparingIsEnoughWhereItServes) {
  const WithoutCompiler here;
  KernelSpec spec;
  spec.vocab = 300;
  here.runtime->prepare({&spec, 1});
  EXPECT_EQ(here.lines.size(), 1u);
  EXPECT_THROW(here.runtime->kernel(spec), Error) << "there is none to hold";
}

TEST(FallbackChoice, NeverMeansAnError) {
  const WithoutCompiler here(FallbackUse::kNever);
  const Call call(here.runtime->engine().device(),
                  random_matrix(DType::kBf16, 5, 300, 2, 1));
  try {
    forward(*here.runtime, call.forward());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.message();
  }
  EXPECT_EQ(here.runtime->counters().fallbacks, 0u);
}

TEST(FallbackChoice, AMissUnderNeverCompileStaysAnError) {
  const WithoutCompiler here(FallbackUse::kWhenNeeded, /*never_compile=*/true);
  const Call call(here.runtime->engine().device(),
                  random_matrix(DType::kBf16, 5, 300, 2, 1));
  try {
    forward(*here.runtime, call.forward());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotCached) << error.message();
  }
}

TEST(FallbackChoice, CanBeAskedFor) {
  const WithoutCompiler here(FallbackUse::kNever);
  const Call call(here.runtime->engine().device(),
                  random_matrix(DType::kBf16, 5, 300, 2, 1));
  forward(*here.runtime, call.forward({.fallback = true}));
  EXPECT_EQ(here.runtime->counters().fallbacks, 1u);
  const WithoutCompiler always(FallbackUse::kAlways);
  forward(*always.runtime, call.forward());
  EXPECT_EQ(always.runtime->counters().fallbacks, 1u);
  EXPECT_THAT(always.lines, IsEmpty());
}

class Fallback : public OnDevice {};
LOGPJIT_ON_DEVICES(Fallback);

TEST_P(Fallback, TheKernelWhereItCanBeBuilt) {
  const Call call(device(), random_matrix(DType::kBf16, 3, 300, 2, 1));
  const std::uint64_t before = runtime().counters().fallbacks;
  forward(runtime(), call.forward());
  EXPECT_EQ(runtime().counters().fallbacks, before);
  forward(runtime(), call.forward({.fallback = true}));
  EXPECT_EQ(runtime().counters().fallbacks, before + 1);
}

TEST_P(Fallback, NoChunkBelowOne) {
  const Call call(device(), random_matrix(DType::kFp32, 3, 100, 2, 1));
  for (const std::int64_t chunk : {0, -1}) {
    for (const bool fallback : {false, true}) {
      const CallOptions options{.fallback = fallback, .chunk_rows = chunk};
      const auto refused = [&](auto&& start) {
        try {
          start();
          ADD_FAILURE() << "nothing was thrown";
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
          EXPECT_THAT(error.message(), HasSubstr("chunk_rows"));
        }
      };
      refused([&] { forward(runtime(), call.forward(options)); });
      refused([&] { backward(runtime(), call.backward(options)); });
    }
  }
}

TEST_P(Fallback, ChunksChangeNoBit) {
  struct Case {
    DType dtype;
    std::int64_t ids_per_row;
  };
  for (const Case& one : {Case{DType::kFp32, 1}, Case{DType::kBf16, 3}}) {
    const HostMatrix matrix = random_matrix(one.dtype, 37, 1031, 2, 1);
    std::vector<std::uint32_t> logp, entropy;
    std::vector<double> gradient;
    for (const std::optional<std::int64_t> chunk :
         {std::optional<std::int64_t>{}, {1}, {3}, {7}, {64}}) {
      SCOPED_TRACE(chunk.value_or(0));
      const Call call(device(), matrix, one.ids_per_row);
      const CallOptions options{.fallback = true, .chunk_rows = chunk};
      forward(runtime(), call.forward(options));
      backward(runtime(), call.backward(options));
      if (!chunk) {
        logp = bits(device(), call.out.logp);
        entropy = bits(device(), call.out.entropy);
        gradient = fetch(device(), call.gradient);
        continue;
      }
      EXPECT_EQ(bits(device(), call.out.logp), logp);
      EXPECT_EQ(bits(device(), call.out.entropy), entropy);
      EXPECT_EQ(fetch(device(), call.gradient), gradient);
    }
  }
}

TEST_P(Fallback, ChunksOfADivergenceChangeNoBit) {
  const HostMatrix matrix = random_matrix(DType::kBf16, 11, 1031, 2, 1);
  const auto student = send(device(), matrix);
  const auto teacher =
      send(device(), random_matrix(DType::kFp32, 11, 1031, 2, 2));
  const auto upstream = send(device(), random_floats(11, 3));
  std::vector<std::uint32_t> kl;
  std::vector<double> of_student;
  for (const std::int64_t chunk : {64, 1, 4}) {
    const CallOptions options{.fallback = true, .chunk_rows = chunk};
    const Values out = poisoned_values(device(), 11, 1);
    const auto gradient = send(device(), matrix);
    const KlInputs inputs{.student = student.view, .teacher = teacher.view};
    kl_forward(runtime(), {.inputs = inputs,
                           .kl = out.logp.view,
                           .student_max = out.max.view,
                           .student_sum = out.sum.view,
                           .teacher_max = out.lse.view,
                           .teacher_sum = out.squares.view,
                           .options = options});
    kl_backward(runtime(), {.inputs = inputs,
                            .kl = out.logp.view,
                            .student_max = out.max.view,
                            .student_sum = out.sum.view,
                            .teacher_max = out.lse.view,
                            .teacher_sum = out.squares.view,
                            .upstream = upstream.view,
                            .student_gradient = {.tensor = gradient.view},
                            .options = options});
    if (chunk == 64) {
      kl = bits(device(), out.logp);
      of_student = fetch(device(), gradient);
    }
    EXPECT_EQ(bits(device(), out.logp), kl);
    EXPECT_EQ(fetch(device(), gradient), of_student);
  }
}

TEST_P(Fallback, GradientsInPlaceAndAdded) {
  const HostMatrix matrix = random_matrix(DType::kFp32, 9, 1031, 2, 1);
  const Call apart(device(), matrix, 3);
  const CallOptions options{.fallback = true};
  forward(runtime(), apart.forward(options));
  backward(runtime(), apart.backward(options));
  const std::vector<double> want = fetch(device(), apart.gradient);

  const Call added(device(), matrix, 3);  // its gradient holds the logits
  RowBackward call = added.backward(options);
  call.max = apart.out.max.view;
  call.sum = apart.out.sum.view;
  call.gradient.accumulate = true;
  backward(runtime(), call);
  const std::vector<double> sums = fetch(device(), added.gradient);
  call.gradient = {.tensor = added.logits.view, .in_place = true};
  backward(runtime(), call);
  EXPECT_EQ(fetch(device(), added.logits), want);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const float sum =
        static_cast<float>(matrix.values[i]) + static_cast<float>(want[i]);
    wrong += static_cast<float>(sums[i]) != sum;
  }
  // Rows without a live id are left as they are, which is the same sum.
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace logpjit::tests
