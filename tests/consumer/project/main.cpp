// Log-probabilities of two rows on the CPU device, against values by hand.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <logpjit/operations.hpp>
#include <logpjit/runtime.hpp>

namespace {

constexpr std::int64_t kRows = 2;
constexpr std::int64_t kVocab = 4;

bool close(float value, double right) {
  std::printf("%.7f, by hand %.7f\n", static_cast<double>(value), right);
  return std::fabs(static_cast<double>(value) - right) < 1e-6;
}

bool run() {
  logpjit::Options options;
  options.device = "cpu";
  logpjit::Runtime runtime(options);

  // softmax: 1/4 each; and 1/8, 1/8, 1/4, 1/2.
  const float two = std::log(2.0F);
  const std::vector<float> logits = {0, 0, 0, 0, 0, 0, two, 2 * two};
  const std::vector<std::int64_t> ids = {1, 3};
  std::vector<float> logp(kRows);

  using logpjit::DType;
  using logpjit::TensorView;
  logpjit::RowForward call;
  call.logits =
      TensorView::contiguous(logits.data(), DType::kFp32, {kRows, kVocab});
  call.ids = TensorView::contiguous(ids.data(), DType::kInt64, {kRows});
  call.logp = TensorView::contiguous(logp.data(), DType::kFp32, {kRows});
  logpjit::forward(runtime, call);
  return close(logp[0], std::log(0.25)) & close(logp[1], std::log(0.5));
}

/// An error of the library arrives as the type its header declares.
bool throws_its_own_error() {
  logpjit::Options options;
  options.device = "toaster";
  try {
    logpjit::Runtime runtime(options);
  } catch (const logpjit::Error& error) {
    std::printf("refused: %s\n", error.what());
    return error.code() == logpjit::ErrorCode::kInvalidArgument;
  }
  return false;
}

}  // namespace

int main() {
  try {
    return run() && throws_its_own_error() ? 0 : 1;
  } catch (const logpjit::Error& error) {
    std::printf("failed: %s\n%s\n", error.what(), error.log().c_str());
    return 1;
  }
}
