// Kernels that the caller holds, and calls inside stream captures.
#include <gmock/gmock.h>

#include "logpjit/error.hpp"
#include "tests/conformance/harness.hpp"
#include "tuning/bench_subject.hpp"
#include "tuning/model_presets.hpp"
#include "tuning/search_space.hpp"

namespace logpjit::tests {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::int64_t kVocab = 9000;
constexpr std::int64_t kRows = 3;

class HeldKernel : public OnDevice {};
LOGPJIT_ON_DEVICES(HeldKernel);

/// Every operation, by specification and by a kernel of another configuration.
TEST_P(HeldKernel, GivesTheBitsOfACallBySpecification) {
  for (const std::string& op : tuning::default_ops()) {
    KernelSpec spec = *tuning::parse_timed_op(op);
    spec.vocab = kVocab;
    const auto subject = tuning::make_tunable_subject(runtime(), spec, kRows);
    subject->poison();
    subject->start(nullptr, 0);
    const auto expected = subject->results();
    const auto configs = tuning::search_space(
        {.spec = subject->spec(), .rows = kRows}, runtime().device());
    subject->use(runtime().kernel(subject->spec(), configs.configs.back()));
    subject->poison();
    EXPECT_NE(subject->results(), expected) << op;
    subject->start(nullptr, 0);
    EXPECT_EQ(subject->results(), expected) << op;
    subject->poison_results();
    for (const std::byte byte : subject->results()) {
      ASSERT_EQ(byte, std::byte{tuning::kPoison}) << op;
    }
    subject->start(nullptr, 0);
    EXPECT_EQ(subject->results(), expected) << op;
  }
}

TEST_P(HeldKernel, OfAnotherSpecificationIsRefused) {
  KernelSpec spec = *tuning::parse_timed_op("logp");
  spec.vocab = kVocab;
  KernelSpec other = spec;
  other.terms = Terms::kEntropy;
  const Kernel kernel = runtime().kernel(other);
  for (const char* op : {"logp", "logp_backward", "kl"}) {
    spec = *tuning::parse_timed_op(op);
    spec.vocab = kVocab;
    const auto subject = tuning::make_tunable_subject(runtime(), spec, kRows);
    subject->use(kernel);
    try {
      subject->start(nullptr, 0);
      ADD_FAILURE() << op;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.message(), HasSubstr("kernel: was made for"));
    }
  }
}

TEST_P(HeldKernel, CapturedCallsAreReplayed) {
  KernelSpec spec = *tuning::parse_timed_op("logp_backward");
  spec.vocab = kVocab;
  const auto subject = tuning::make_tunable_subject(runtime(), spec, kRows);
  subject->start(nullptr, 0);
  const auto expected = subject->results();
  const auto graph = device().capture([&](CUstream_st* stream) {
    for (int i = 0; i < 3; ++i) subject->start(stream, 0);
  });
  for (int replay = 0; replay < 2; ++replay) {
    subject->poison();
    device().synchronize();
    graph->replay_ms();
    EXPECT_EQ(subject->results(), expected);
  }
}

TEST_P(HeldKernel, FirstCallInsideACaptureLoadsAndIsLogged) {
  std::vector<std::string> log;
  Options options = Options::from_environment();
  options.device = GetParam();
  options.log = [&](const std::string& line) { log.push_back(line); };
  Runtime fresh(options);
  KernelSpec spec = *tuning::parse_timed_op("logp");
  spec.vocab = kVocab;
  const auto subject = tuning::make_tunable_subject(fresh, spec, kRows);
  const auto graph = fresh.engine().device().capture(
      [&](CUstream_st* stream) { subject->start(stream, 0); });
  subject->poison();
  fresh.engine().device().synchronize();
  graph->replay_ms();
  const auto replayed = subject->results();
  subject->poison();
  subject->start(nullptr, 0);
  EXPECT_EQ(subject->results(), replayed);
  if (!on_cpu()) {
    EXPECT_THAT(log, Contains(HasSubstr("stream capture")));
  }
}

}  // namespace
}  // namespace logpjit::tests
