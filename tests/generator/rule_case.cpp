// Breaks each rule and compares every word of the answer.
#include "tests/generator/rule_case.hpp"

#include <utility>

namespace logpjit::generator {
namespace {

void replace_all(std::string& text, const std::string& from,
                 const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::string replace_once(std::string text, const std::string& from,
                         const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

TEST_P(RuleTest, IsReportedWithPlaceAndAdvice) {
  const Rule& rule = GetParam();
  const TemplatesFolder folder;
  folder.write("t.cuh", replace_once(kBase, rule.from, rule.to));
  ProcessResult result = folder.scan();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  replace_all(result.err, folder.path().string() + "/", "");
  replace_all(result.err, folder.path().string(), "DIR");
  EXPECT_EQ(result.err, rule.expected + "\n");
}

TEST(RuleBase, BreaksNoRule) {
  const TemplatesFolder folder;
  folder.write("t.cuh", kBase);
  const ProcessResult result = folder.scan();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

}  // namespace logpjit::generator
