// logpjit run on the CPU device: right values, and every kind of bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "tests/cli/program.hpp"
#include "tuning/npy.hpp"

namespace logpjit::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tuning::NpyArray;
using tuning::NpyType;
using Words = std::vector<std::string>;

template <typename T>
NpyArray array_of(NpyType type, std::vector<std::int64_t> shape,
                  const std::vector<T>& values) {
  NpyArray array{type, std::move(shape), {}};
  array.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) {
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  }
  return array;
}

std::vector<float> floats(const fs::path& file) {
  const NpyArray array = tuning::read_npy(file);
  std::vector<float> values(array.bytes.size() / sizeof(float));
  if (!values.empty()) {
    std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  }
  return values;
}

class Run : public ::testing::Test {
 protected:
  Run() {
    tuning::write_npy(logits_, array_of<float>(NpyType::kFloat32, {2, 3},
                                               {0, 1, 2, 3, 4, 5}));
    tuning::write_npy(ids_,
                      array_of<std::int64_t>(NpyType::kInt64, {2}, {0, -100}));
  }

  ProgramResult run(const Words& more = {}, std::string op = "logp") {
    Words words{
        "run",        "--device",       "cpu",       "--op",        op,
        "--logits",   logits_.string(), "--targets", ids_.string(), "--out",
        out_.string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_logpjit(shared_cache(), words);
  }

  void expect_failure(const Words& more, const std::string& reason) {
    const auto result = run(more);
    EXPECT_TRUE(result.code == 1 || result.code == 2) << result.code;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err,
                AllOf(StartsWith("logpjit: error: "), HasSubstr(reason)));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
    EXPECT_TRUE(!fs::exists(out_) || fs::is_empty(out_))
        << "something was written";
  }

  void write(const fs::path& file, const std::string& header,
             std::size_t data) {
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(header.size());
    text += '\0';
    std::ofstream(file, std::ios::binary)
        << text << header << std::string(data, '\0');
  }

  logpjit::testing::TemporaryDirectory folder_;
  fs::path logits_ = folder_.path() / "x.npy";
  fs::path ids_ = folder_.path() / "t.npy";
  fs::path out_ = folder_.path() / "out";
};

TEST_F(Run, ValuesAndStatistics) {
  const auto result = run();
  ASSERT_EQ(result.code, 0) << result.err;
  const auto logp = floats(out_ / "logp.npy");
  ASSERT_EQ(logp.size(), 2u);
  EXPECT_NEAR(logp[0], -2.4076059644443806, 1e-6);
  EXPECT_EQ(logp[1], 0);
  EXPECT_FALSE(std::signbit(logp[1]));
  EXPECT_EQ(floats(out_ / "max.npy").at(0), 2);
  EXPECT_NEAR(floats(out_ / "sum.npy").at(0),
              1 + std::exp(-1.0) + std::exp(-2.0), 1e-6);
  EXPECT_THAT(result.out, HasSubstr("-2.407606"));
}

TEST_F(Run, SecondProcessCompilesNothing) {
  const logpjit::testing::TemporaryDirectory cache;
  const Words words{"run",      "--device",    "cpu",       "--op", "logp",
                    "--logits", logits_,       "--targets", ids_,   "--out",
                    out_,       "--cache-dir", cache.path()};
  const auto first = run_logpjit("/nowhere", words);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("1 kernel compiled and kept in " +
                                   cache.path().string()));
  const auto second = run_logpjit("/nowhere", words);
  EXPECT_THAT(second.out, HasSubstr("1 kernel read from the cache"));
}

TEST_F(Run, MoreOutputsAtOnce) {
  const auto result = run({}, "logp+entropy");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NEAR(floats(out_ / "entropy.npy").at(1), 0.8323955818399389, 1e-6);
}

TEST_F(Run, Bf16BitsAsUint16) {
  tuning::write_npy(logits_, array_of<std::uint16_t>(NpyType::kUint16, {1, 3},
                                                     {0x0000, 0x3f80, 0x4000}));
  tuning::write_npy(ids_, array_of<std::int32_t>(NpyType::kInt32, {1}, {0}));
  const auto result = run({"--dtype", "bf16"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NEAR(floats(out_ / "logp.npy").at(0), -2.4076059644443806, 1e-6);
}

TEST_F(Run, GradientsFromUpstream) {
  const fs::path grad = folder_.path() / "g.npy";
  tuning::write_npy(grad, array_of<float>(NpyType::kFloat32, {2}, {2, 1}));
  for (const char* op : {"logp_backward", "logp_with_grad"}) {
    const auto result = run({"--grad-out", grad.string()}, op);
    ASSERT_EQ(result.code, 0) << result.err;
    const auto values = floats(out_ / "grad.npy");
    ASSERT_EQ(values.size(), 6u);
    EXPECT_NEAR(values[0], 2 * (1 - 0.09003057317038046), 1e-6);
    EXPECT_NEAR(values[2], -2 * 0.6652409557748219, 1e-6);
    EXPECT_EQ(values[3], 0);
  }
}

TEST_F(Run, Divergences) {
  const fs::path teacher = folder_.path() / "y.npy";
  tuning::write_npy(logits_,
                    array_of<float>(NpyType::kFloat32, {1, 3}, {0, 1, 2}));
  tuning::write_npy(teacher,
                    array_of<float>(NpyType::kFloat32, {1, 3}, {2, 0, -1}));
  const auto kl = [&](const std::string& op, const Words& more) {
    Words words{"run",   "--device",  "cpu",   "--op",  op,  "--logits",
                logits_, "--teacher", teacher, "--out", out_};
    words.insert(words.end(), more.begin(), more.end());
    return run_logpjit(shared_cache(), words);
  };
  ASSERT_EQ(kl("kl", {}).code, 0);
  EXPECT_NEAR(floats(out_ / "kl.npy").at(0), 1.6851240160639813, 2e-6);
  ASSERT_EQ(kl("kl_reverse", {}).code, 0);
  EXPECT_NEAR(floats(out_ / "kl.npy").at(0), 1.8226302471504072, 2e-6);
  const fs::path grad = folder_.path() / "g.npy";
  tuning::write_npy(grad, array_of<float>(NpyType::kFloat32, {1}, {1}));
  const auto result = kl("kl_backward", {"--grad-out", grad});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NEAR(floats(out_ / "grad.npy").at(0), -0.7537641613109591, 2e-6);
}

TEST_F(Run, FlagsThatTheOperationNeedsOrHasNoUseFor) {
  expect_failure({"--teacher", "y.npy"}, "--teacher: logp has no use for it");
  expect_failure({"--grad-out", "g.npy"}, "--grad-out: logp has no use for it");
  EXPECT_THAT(run({}, "logp_backward").err,
              HasSubstr("--grad-out: logp_backward needs upstream gradients"));
  EXPECT_THAT(run({}, "kl").err,
              HasSubstr("--teacher: kl needs the teacher's logits"));
  EXPECT_EQ(run({}, "entropy").code, 0);
}

TEST_F(Run, Uint16NeedsTheDtype) {
  tuning::write_npy(
      logits_, array_of<std::uint16_t>(NpyType::kUint16, {1, 3}, {0, 0, 0}));
  expect_failure({}, "say --dtype bf16");
}

TEST_F(Run, TemperatureAndPadding) {
  const auto result = run({"--temperature", "2", "--vocab", "2"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NEAR(floats(out_ / "logp.npy").at(0), -std::log1p(std::exp(0.5)),
              1e-6);
}

TEST_F(Run, NoRows) {
  tuning::write_npy(logits_, array_of<float>(NpyType::kFloat32, {0, 3}, {}));
  tuning::write_npy(ids_, array_of<std::int64_t>(NpyType::kInt64, {0}, {}));
  const auto result = run();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(floats(out_ / "logp.npy").empty());
}

TEST_F(Run, NoColumns) {
  tuning::write_npy(logits_, array_of<float>(NpyType::kFloat32, {2, 0}, {}));
  expect_failure({}, "V is 0");
}

TEST_F(Run, BadFlags) {
  expect_failure({"--temperature", "0"}, "temperature");
  expect_failure({"--temperature", "nan"}, "temperature");
  expect_failure({"--temperature", "warm"}, "--temperature");
  expect_failure({"--vocab", "-1"}, "vocab");
  expect_failure({"--vocab", "9"}, "vocab");
  expect_failure({"--dtype", "bf16"}, "holds fp32 (<f4), --dtype says bf16");
}

TEST_F(Run, IdsThatDoNotFit) {
  tuning::write_npy(ids_,
                    array_of<std::int64_t>(NpyType::kInt64, {3}, {0, 1, 2}));
  expect_failure({}, "ids");
  tuning::write_npy(ids_, array_of<float>(NpyType::kFloat32, {2}, {0, 1}));
  expect_failure({}, "--targets: " + ids_.string() + ": holds <f4");
}

TEST_F(Run, LogitsOfTheWrongShape) {
  tuning::write_npy(logits_,
                    array_of<float>(NpyType::kFloat32, {3}, {1, 2, 3}));
  expect_failure({}, "has the shape [3], expected [N, V] or [B, S, V]");
  tuning::write_npy(logits_,
                    array_of<std::int32_t>(NpyType::kInt32, {1, 2}, {1, 2}));
  expect_failure({}, "holds integers (<i4), expected floats");
}

TEST_F(Run, BadFilesOfEveryKind) {
  const std::string rest = ", 'fortran_order': False, 'shape': (2, 3)}";
  write(logits_, "{'descr': '<f4'" + rest, 20);
  expect_failure({}, "truncated");
  write(logits_, "{'descr': '>f4'" + rest, 24);
  expect_failure({}, "big-endian");
  write(logits_, "{'descr': '|O'" + rest, 24);
  expect_failure({}, "Python objects");
  write(logits_, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
        24);
  expect_failure({}, "Fortran-ordered");
  write(logits_,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, "
        "4294967296)}",
        24);
  expect_failure({}, "64 bits");
  std::ofstream(logits_) << "not numpy";
  expect_failure({}, "not a .npy file");
  fs::remove(logits_);
  expect_failure({}, "--logits: " + logits_.string());
}

TEST_F(Run, NoTargets) {
  const auto result =
      run_logpjit(shared_cache(), {"run", "--device", "cpu", "--op", "logp",
                                   "--logits", logits_, "--out", out_});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("--targets: logp needs the ids"));
}

TEST_F(Run, AnOutFolderThatCannotBeMade) {
  std::ofstream(folder_.path() / "file") << "x";
  out_ = folder_.path() / "file" / "out";
  const auto result = run();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("--out: " + out_.string()));
}

TEST_F(Run, ACacheThatCannotBeWrittenIsAWarning) {
  std::ofstream(folder_.path() / "file") << "x";
  const auto result =
      run({"--cache-dir", (folder_.path() / "file" / "cache").string()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("logpjit: warning: cache: "));
  EXPECT_EQ(floats(out_ / "logp.npy").size(), 2u);
}

}  // namespace
}  // namespace logpjit::cli
