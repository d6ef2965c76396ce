// logpjit verify on the CPU device: the project's cases, and a file of one's
// own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace logpjit::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json one_case(const char* id, double expected) {
  return {{"id", id},
          {"source", Json::array()},
          {"kind", "k"},
          {"op", "logp"},
          {"dtype", "fp32"},
          {"shape", {1, 2}},
          {"strides", nullptr},
          {"logits", {{0, 0}}},
          {"ids", {0}},
          {"extra", Json::object()},
          {"expected",
           {{"logp", {expected}}, {"tol", {{"abs", 1e-6}, {"rel", 0}}}}}};
}

class Verify : public ::testing::Test {
 protected:
  ProgramResult verify(const Json& cases, std::vector<std::string> more = {}) {
    const auto file = folder_.path() / "cases.json";
    std::ofstream(file) << cases.dump();
    std::vector<std::string> words{"verify", "--device", "cpu", "--cases",
                                   file.string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_logpjit(shared_cache(), words);
  }

  logpjit::testing::TemporaryDirectory folder_;
};

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  const auto begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

TEST_F(Verify, CountsAtTheEnd) {
  Json unknown = one_case("C3", 0);
  unknown["op"] = "topk";
  unknown["expected"] = Json::object();
  unknown["ids"] = nullptr;
  const auto result = verify(
      {one_case("C1", -0.6931471805599453), one_case("C2", -0.5), unknown});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(last_line(result.out), "1 passed, 1 failed, 1 skipped");
  EXPECT_THAT(result.out, HasSubstr("C2                 failed: logp[0] is "
                                    "-0.6931471"));
  EXPECT_THAT(result.out, HasSubstr("operation topk does not exist yet"));
}

TEST_F(Verify, OneDocument) {
  const auto result =
      verify(Json::array({one_case("C1", -0.6931471805599453)}), {"--json"});
  EXPECT_EQ(result.code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["passed"], 1);
  EXPECT_EQ(document["cases"][0]["status"], "passed");
}

TEST_F(Verify, SelectsByOperation) {
  const auto result = verify(Json::array({one_case("C1", -0.6931471805599453)}),
                             {"--op", "entropy"});
  EXPECT_EQ(last_line(result.out), "0 passed, 0 failed, 0 skipped");
}

TEST_F(Verify, AMalformedFile) {
  Json broken = one_case("C1", 0);
  broken["shape"] = {1};
  const auto result = verify(Json::array({broken}));
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("cases.json: case C1: /0/shape: is "
                                    "neither [N, V] nor [B, S, V]"));
}

TEST_F(Verify, AFileThatIsNotThere) {
  const auto result = run_logpjit(
      shared_cache(), {"verify", "--device", "cpu", "--cases", "/none.json"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("/none.json"));
}

TEST(VerifyBuiltIn, TheProjectsOwnCasesHold) {
  const auto result = run_logpjit(
      shared_cache(), {"verify", "--device", "cpu", "--op", "logp", "--json"});
  ASSERT_EQ(result.code, 0) << result.out << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_GE(document["passed"].get<int>(), 30) << document.dump(1);
  EXPECT_EQ(document["failed"], 0) << document.dump(1);
}

TEST(VerifyBuiltIn, TheyHoldOnTheFallbackWithoutACompiler) {
  const auto result = run_logpjit("",
                                  {"verify", "--device", "cpu", "--fallback",
                                   "--op", "logp+entropy_backward", "--json"},
                                  {"LOGPJIT_HOST_COMPILER=/nonexistent/c++"});
  ASSERT_EQ(result.code, 0) << result.out << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_GE(document["passed"].get<int>(), 1) << document.dump(1);
  EXPECT_EQ(document["failed"], 0) << document.dump(1);
}

}  // namespace
}  // namespace logpjit::cli
