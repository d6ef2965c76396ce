// logpjit report: files in, tables and pages out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tuning/report.hpp"

namespace logpjit::cli {
namespace {

using ::testing::HasSubstr;

class ReportCommand : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }
  static std::string report(double ms) {
    const tuning::ReportTiming timing{
        .median_ms = ms, .spread = 0.01, .samples_ms = {ms}};
    return tuning::to_json({.kind = "pretune",
                            .created = "2026-01-31T12:00:00Z",
                            .device = {.name = "a device"},
                            .entries = {{.op = "logp",
                                         .dtype = "bf16",
                                         .vocab = 1000,
                                         .rows = 4,
                                         .spec = "s",
                                         .status = "tuned",
                                         .config = "block=512",
                                         .config_source = "exact",
                                         .operation = timing,
                                         .candidates = {{.config = "block=512",
                                                         .is_default = true,
                                                         .status = "measured",
                                                         .timing = timing}}}}});
  }

  const testing::TemporaryDirectory folder_;
};

TEST_F(ReportCommand, ShowDiffAndPage) {
  const std::string before = file("a.json", report(2));
  const std::string after = file("b.json", report(1));
  const auto shown =
      run_logpjit(folder_.path(), {"report", "show", "--candidates", before});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("(default) block=512"));
  const auto compared =
      run_logpjit(folder_.path(), {"report", "diff", before, after});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("1 faster"));
  const auto document =
      run_logpjit(folder_.path(), {"report", "diff", "--json", before, after});
  EXPECT_EQ(nlohmann::json::parse(document.out)["entries"][0]["change"],
            "faster");
  const auto page = run_logpjit(folder_.path(), {"report", "html", before});
  EXPECT_EQ(page.code, 0) << page.err;
  std::ostringstream text;
  text << std::ifstream(folder_.path() / "a.html").rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("</html>"));
}

TEST_F(ReportCommand, BadFilesAreNamed) {
  const std::string whole = report(1);
  struct Row {
    std::string text;
    const char* message;
  };
  const Row rows[] = {{whole.substr(0, 100), "is cut short"},
                      {"hello", "is not JSON"},
                      {"", "is empty"},
                      {"{\"logpjit_report\": 99}", "of version 99"},
                      {"{}", "is no logpjit report"}};
  for (const Row& row : rows) {
    const std::string bad = file("bad.json", row.text);
    for (const char* command : {"show", "html"}) {
      const auto result = run_logpjit(folder_.path(), {"report", command, bad});
      EXPECT_EQ(result.code, 2) << row.message;
      EXPECT_THAT(result.err, HasSubstr("bad.json"));
      EXPECT_THAT(result.err, HasSubstr(row.message));
    }
    // Either side of a comparison.
    const std::string good = file("good.json", whole);
    for (const auto& [before, after] :
         {std::pair(good, bad), std::pair(bad, good)}) {
      const auto result =
          run_logpjit(folder_.path(), {"report", "diff", before, after});
      EXPECT_EQ(result.code, 2) << row.message;
      EXPECT_EQ(result.out, "");
      EXPECT_THAT(result.err, HasSubstr("bad.json"));
      EXPECT_THAT(result.err, HasSubstr(row.message));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "bad.html"));
  const auto absent =
      run_logpjit(folder_.path(), {"report", "show", "no.json"});
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.err, HasSubstr("no.json"));
  EXPECT_EQ(run_logpjit(folder_.path(), {"report", "diff", "a"}).code, 2);
  EXPECT_EQ(run_logpjit(folder_.path(), {"report"}).code, 2);
}

TEST_F(ReportCommand, BadPeersAreNamedBeforeAnythingIsTimed) {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row rows[] = {{"{\"rows\": 4", "is cut short"},
                      {"peers", "is not JSON"},
                      {"", "is empty"},
                      {"{\"rows\": 4}", "rows, vocab, dtype and results"},
                      {"[]", "rows, vocab, dtype and results"}};
  const std::string good = file("good.json", report(1));
  for (const Row& row : rows) {
    const std::string bad = file("peers.json", row.text);
    for (const auto& words :
         {std::vector<std::string>{"report", "show", good},
          {"report", "html", good},
          {"bench", "--device", "cpu", "--vocab", "1000", "--rows", "4"}}) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--peers", bad});
      const auto result = run_logpjit(folder_.path() / "cache", all);
      EXPECT_EQ(result.code, 2) << row.message;
      EXPECT_EQ(result.out, "") << row.message;
      EXPECT_THAT(result.err, HasSubstr("peers.json"));
      EXPECT_THAT(result.err, HasSubstr(row.message));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "good.html"));
  // Nothing was compiled.
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "cache"));
}

}  // namespace
}  // namespace logpjit::cli
