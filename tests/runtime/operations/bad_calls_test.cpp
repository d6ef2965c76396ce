// Calls that cannot be meant: each is refused by the name of its argument
// before a kernel is looked for, and writes nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tests/runtime/operations/checks_only.hpp"
#include "tests/support/device/fake_compiler.hpp"
#include "tests/support/device/null_device.hpp"

namespace logpjit {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kColumns = 8;
constexpr float kUntouched = 17;

/// A good forward on the CPU, to be spoilt.
class BadCalls : public ::testing::Test {
 protected:
  BadCalls() : runtime_(checks_only()) {
    call_.logits = view(logits_, DType::kFp32, {kRows, kColumns});
    call_.ids = view(ids_, DType::kInt64, {kRows});
    call_.logp = view(logp_, DType::kFp32, {kRows});
    call_.max = view(max_, DType::kFp32, {kRows});
  }

  template <typename T>
  static TensorView view(std::vector<T>& data, DType dtype,
                         std::initializer_list<std::int64_t> shape) {
    return TensorView::contiguous(data.data(), dtype, shape);
  }

  /// "code: message" of the call as it stands.
  std::string failure() {
    try {
      forward(runtime_, call_);
    } catch (const Error& error) {
      return fmt::format("{}: {}", name(error.code()), error.message());
    }
    return "none";
  }

  void expect_refusal(const std::string& argument, const std::string& reason) {
    EXPECT_THAT(
        failure(),
        AllOf(StartsWith("invalid_argument: forward: " + argument + ": "),
              HasSubstr(reason)));
    EXPECT_THAT(logp_, Each(kUntouched));
    EXPECT_THAT(max_, Each(kUntouched));
  }

  std::vector<float> logits_ = std::vector<float>(kRows * kColumns);
  std::vector<std::int64_t> ids_ = std::vector<std::int64_t>(kRows);
  std::vector<float> logp_ = std::vector<float>(kRows, kUntouched);
  std::vector<float> max_ = std::vector<float>(kRows, kUntouched);
  Runtime runtime_;
  RowForward call_;
};

TEST_F(BadCalls, TheGoodOneGetsAsFarAsItsKernel) {
  EXPECT_THAT(failure(), StartsWith("not_cached: "));
}

TEST_F(BadCalls, NoRowsIsSuccessWithoutAKernel) {
  call_.logits = view(logits_, DType::kFp32, {0, kColumns});
  call_.ids = view(ids_, DType::kInt64, {0});
  call_.logp = view(logp_, DType::kFp32, {0});
  call_.max = view(max_, DType::kFp32, {0});
  EXPECT_EQ(failure(), "none");
  call_.logits.data = call_.ids.data = call_.logp.data = nullptr;
  EXPECT_EQ(failure(), "none");
}

TEST_F(BadCalls, MissingTensors) {
  call_.ids = {};
  expect_refusal("ids", "required");
  call_.logits = {};
  expect_refusal("logits", "is required");
}

TEST_F(BadCalls, NothingAskedFor) {
  call_.logp = call_.max = {};
  expect_refusal("outputs", "none is given");
}

TEST_F(BadCalls, NullPointers) {
  call_.logits.data = nullptr;
  expect_refusal("logits", "null pointer");
  call_.logits.data = logits_.data();
  call_.ids.data = nullptr;
  expect_refusal("ids", "null pointer");
  call_.ids.data = ids_.data();
  call_.logp.data = nullptr;
  expect_refusal("logp", "null pointer");
}

TEST_F(BadCalls, AddressesBetweenElements) {
  call_.logits.data = reinterpret_cast<char*>(logits_.data()) + 2;
  expect_refusal("logits", "not a multiple of the 4-byte element");
  call_.logits.data = logits_.data();
  call_.ids.data = reinterpret_cast<char*>(ids_.data()) + 4;
  expect_refusal("ids", "not a multiple of the 8-byte element");
}

TEST_F(BadCalls, SizesThatAreNone) {
  call_.logits.shape[1] = 0;
  expect_refusal("logits", "V is 0");
  call_.logits.shape[1] = -1;
  expect_refusal("logits", "negative");
  call_.logits.shape = {-kRows, kColumns};
  expect_refusal("logits", "negative");
}

TEST_F(BadCalls, RanksThatAreNone) {
  call_.logits = view(logits_, DType::kFp32, {kRows * kColumns});
  expect_refusal("logits", "neither [N, V] nor [B, S, V]");
  call_.logits = view(logits_, DType::kFp32, {1, 1, kRows, kColumns});
  expect_refusal("logits", "neither [N, V] nor [B, S, V]");
  call_.logits.rank = 99;
  expect_refusal("logits", "rank 99");
}

TEST_F(BadCalls, Dtypes) {
  call_.logits.dtype = DType::kInt32;
  expect_refusal("logits", "dtype int32");
  call_.logits.dtype = DType::kFp32;
  call_.ids.dtype = DType::kFp32;
  expect_refusal("ids", "dtype fp32");
  call_.ids.dtype = DType::kInt64;
  call_.logp.dtype = DType::kBf16;
  expect_refusal("logp", "dtype bf16");
}

TEST_F(BadCalls, LengthsThatDoNotFit) {
  call_.ids.shape[0] = kRows - 1;
  expect_refusal("ids", "leading dimensions");
  call_.ids.shape[0] = kRows;
  call_.logp.shape[0] = kRows + 1;
  expect_refusal("logp", "leading dimensions");
}

TEST_F(BadCalls, StridesThatDoNotFit) {
  call_.logp.strides[0] = 2;
  expect_refusal("logp", "must be contiguous");
  call_.logp.strides[0] = 1;
  call_.logits.strides[1] = 2;
  EXPECT_THAT(failure(), AllOf(StartsWith("unsupported: forward: logits: "),
                               HasSubstr("contiguous")));
}

TEST_F(BadCalls, Vocabularies) {
  for (const std::int64_t vocab : {std::int64_t{-1}, kColumns + 1,
                                   std::numeric_limits<std::int64_t>::min()}) {
    call_.vocab = vocab;
    expect_refusal("vocab", fmt::format("{}", vocab));
  }
}

TEST_F(BadCalls, Temperatures) {
  for (const float value : {0.0f, -1.0f, INFINITY, NAN}) {
    call_.transform.temperature = value;
    expect_refusal("temperature", "not finite and above 0");
  }
  call_.transform.temperature = 1;
  for (const float value : {-1.0f, INFINITY, NAN}) {
    call_.transform.softcap = value;
    expect_refusal("softcap", "");
  }
}

TEST_F(BadCalls, OutputsOverOtherTensors) {
  call_.logp.data = logits_.data() + 3;
  EXPECT_THAT(failure(), AllOf(StartsWith("invalid_argument: forward: logp: "),
                               HasSubstr("overlaps logits")));
  call_.logp.data = max_.data();
  EXPECT_THAT(failure(), HasSubstr("overlaps"));
}

TEST_F(BadCalls, AddressesThatCannotBe) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 2;
  call_.logits.strides[0] = kFar;
  expect_refusal("logits", "reaches beyond what an address can be");
  call_.logits.strides[0] = kColumns;
  call_.ids.strides[0] = -kFar;
  expect_refusal("ids", "reaches beyond what an address can be");
  call_.ids.strides[0] = 1;
  call_.logits.rank = 3;
  call_.logits.shape = {kFar, kFar, kColumns};
  call_.logits.strides = {0, 0, 1};
  expect_refusal("logits", "more than 64 bits can count");
}

TEST_F(BadCalls, CountersThatAreNone) {
  std::vector<std::int64_t> counter(2);
  call_.out_of_range = view(counter, DType::kInt64, {1});
  EXPECT_THAT(failure(), StartsWith("not_cached: "));
  call_.out_of_range.data = nullptr;
  expect_refusal("out_of_range", "null pointer");
  call_.out_of_range = view(counter, DType::kInt64, {2});
  expect_refusal("out_of_range", "is not of shape [1]");
  call_.out_of_range = view(counter, DType::kFp32, {1});
  expect_refusal("out_of_range", "dtype fp32");
  call_.out_of_range = view(max_, DType::kInt64, {1});
  expect_refusal("out_of_range", "overlaps max");
}

TEST_F(BadCalls, TensorsOfAnotherDevice) {
  call_.ids.device = {DeviceKind::kCuda, 1};
  expect_refusal("ids", "lies on cuda:1, the runtime works on cpu:0");
}

TEST_F(BadCalls, AKernelForAnotherCall) {
  Options options = checks_only();
  options.never_compile = false;
  Runtime compiling(options);
  KernelSpec spec = *parse_op("logp");
  spec.logits = DType::kFp32;
  spec.vocab = kColumns + 1;
  Kernel kernel;
  try {
    kernel = compiling.kernel(spec);
  } catch (const Error& error) {
    GTEST_SKIP() << error.message();
  }
  EXPECT_THROW(launch(kernel, call_), Error);
  EXPECT_THAT(logp_, Each(kUntouched));
}

TEST_F(BadCalls, AnUnknownConfiguration) {
  KernelSpec spec = *parse_op("logp");
  spec.vocab = kColumns;
  for (const LaunchConfig& config :
       {LaunchConfig{{"block", 100}, {"min_blocks", 1}, {"flight", 4}},
        LaunchConfig{{"blok", 128}}}) {
    try {
      runtime_.kernel(spec, config);
      ADD_FAILURE() << config.text();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.message();
    }
  }
}

/// A forward of that many rows on a GPU that runs nothing; its tensors are
/// addresses only.
std::string launch_rows(testing::NullDevice& gpu, Runtime& runtime,
                        std::int64_t rows, std::int64_t vocab) {
  const auto place = [](int bit) {
    return reinterpret_cast<void*>(std::uintptr_t{1} << bit);
  };
  const DeviceId device = gpu.info().id;
  RowForward call;
  call.logits =
      TensorView::contiguous(place(10), DType::kBf16, {rows, vocab}, device);
  call.ids = TensorView::contiguous(place(61), DType::kInt64, {rows}, device);
  call.logp = TensorView::contiguous(place(62), DType::kFp32, {rows}, device);
  try {
    forward(runtime, call);
  } catch (const Error& error) {
    return fmt::format("{}: {}", name(error.code()), error.message());
  }
  return "";
}

TEST(ManyRows, ALaunchFitsItsGridOrIsRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  auto made = std::make_unique<testing::NullDevice>();
  testing::NullDevice& gpu = *made;
  Runtime runtime(std::make_unique<runtime::Engine>(
      Options{}, std::move(made), std::make_unique<testing::FakeCompiler>()));
  for (const std::int64_t vocab : {64, 5000, 151936, 300000}) {
    for (const std::int64_t rows :
         {kMost, kMost + 1, 2 * kMost + 2, std::int64_t{1} << 34}) {
      SCOPED_TRACE(fmt::format("{} rows of {}", rows, vocab));
      gpu.forget();
      const std::string failure = launch_rows(gpu, runtime, rows, vocab);
      if (failure.empty()) {
        ASSERT_EQ(gpu.launches().size(), 1u);
        EXPECT_GE(gpu.launches()[0].shape.grid, 1u);
        EXPECT_LE(gpu.launches()[0].shape.grid, kMost);
      } else {
        EXPECT_THAT(failure, AllOf(StartsWith("unsupported: "),
                                   HasSubstr("split the call")));
        EXPECT_THAT(gpu.launches(), ::testing::IsEmpty());
      }
    }
  }
}

TEST(BadDevices, AreNamed) {
  for (const char* device : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "CPU"}) {
    Options options;
    options.device = device;
    try {
      Runtime runtime(options);
      ADD_FAILURE() << device;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.message(), HasSubstr(fmt::format("'{}'", device)));
    }
  }
}

}  // namespace
}  // namespace logpjit
