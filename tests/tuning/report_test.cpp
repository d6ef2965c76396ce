// Reports: their schema, reading them back, what is wrong with bad ones, pages.
#include "tuning/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "logpjit/error.hpp"
#include "tests/support/json_schema.hpp"
#include "tuning/report_diff.hpp"
#include "tuning/report_html.hpp"

namespace logpjit::tuning {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string schema() {
  std::stringstream text;
  text
      << std::ifstream(LOGPJIT_SOURCE_DIR "/tuning/report.schema.json").rdbuf();
  return text.str();
}

ReportTiming timing(double ms) {
  return {.median_ms = ms, .spread = 0.01, .samples_ms = {ms, ms * 1.01}};
}

Report sample() {
  ReportEntry entry{.op = "logp",
                    .dtype = "bf16",
                    .vocab = 151936,
                    .rows = 64,
                    .spec = "family=1 op=logp",
                    .status = "tuned",
                    .passes = "1 read",
                    .bytes = 19447808,
                    .config = "block=512",
                    .config_source = "exact",
                    .verdict = "faster",
                    .operation = timing(0.5),
                    .floor = timing(0.4),
                    .copy = timing(0.8),
                    .copy_bytes = 38895616,
                    .accuracy = ReportAccuracy{.values = 4},
                    .candidates = {{.config = "block=256",
                                    .is_default = true,
                                    .status = "measured",
                                    .timing = timing(0.6),
                                    .registers = 40},
                                   {.config = "block=512",
                                    .status = "measured",
                                    .timing = timing(0.5)},
                                   {.config = "block=1024",
                                    .status = "compile_failed",
                                    .reason = "<b>no & never</b>"}},
                    .rejected = {{"registers", 3}}};
  ReportEntry skipped{.op = "kl",
                      .dtype = "fp32",
                      .vocab = 10,
                      .rows = 1,
                      .status = "skipped",
                      .reason = "the budget was spent",
                      .config_source = "default"};
  return {.kind = "pretune",
          .logpjit = "0.1.0",
          .created = "2026-01-31T12:00:00Z",
          .device = {.name = "a device", .features = {{"kind", "cpu"}}},
          .compiler = "a compiler",
          .seconds = 3,
          .budget_s = 60,
          .entries = {entry, skipped}};
}

std::string message_of(const std::string& text) {
  try {
    parse_report(text, "r.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  return "no error";
}

TEST(Report, PassesItsSchema) {
  EXPECT_THAT(testing::schema_faults(schema(), to_json(sample())), IsEmpty());
  EXPECT_THAT(testing::schema_faults(
                  schema(), to_json(Report{.kind = "bench",
                                           .created = "2026-01-31T12:00:00Z"})),
              IsEmpty());
}

TEST(Report, SchemaRefusesWhatIsWrong) {
  Report wrong = sample();
  wrong.entries[0].status = "guessed";
  EXPECT_THAT(testing::schema_faults(schema(), to_json(wrong)),
              ::testing::ElementsAre(HasSubstr("/entries/0/status")));
  wrong = sample();
  wrong.entries[0].operation->median_ms = 0;
  EXPECT_THAT(testing::schema_faults(schema(), to_json(wrong)), Not(IsEmpty()));
  EXPECT_THAT(testing::schema_faults(schema(), "{\"logpjit_report\": 1}"),
              Not(IsEmpty()));
  std::string extra = to_json(sample());
  extra.insert(1, "\"more\": 1,");
  EXPECT_THAT(testing::schema_faults(schema(), extra),
              ::testing::ElementsAre(HasSubstr("/more")));
}

TEST(Report, IsReadBack) {
  const std::string text = to_json(sample());
  EXPECT_EQ(to_json(parse_report(text, "r.json")), text);
}

TEST(Report, BadFilesAreNamedWithTheirFault) {
  const std::string text = to_json(sample());
  EXPECT_THAT(message_of(text.substr(0, text.size() / 2)),
              HasSubstr("r.json: is cut short"));
  EXPECT_THAT(message_of(""), HasSubstr("r.json: is empty"));
  EXPECT_THAT(message_of("not json"), HasSubstr("r.json: is not JSON"));
  EXPECT_THAT(message_of("[]"), HasSubstr("is no logpjit report"));
  EXPECT_THAT(message_of("{\"op\": 1}"), HasSubstr("is no logpjit report"));
  EXPECT_THAT(message_of("{\"logpjit_report\": 2}"),
              HasSubstr("is a report of version 2"));
  EXPECT_THAT(message_of("{\"logpjit_report\": 1}"),
              HasSubstr("/kind is missing"));
  std::string wrong = text;
  wrong.replace(wrong.find("\"rows\": 64"), 10, "\"rows\": []");
  EXPECT_THAT(message_of(wrong),
              HasSubstr("/entries/0/rows is not an integer"));
}

TEST(Report, FiguresOfAnEntry) {
  const ReportEntry entry = sample().entries[0];
  EXPECT_NEAR(entry.to_floor().value(), 1.25, 1e-12);
  EXPECT_NEAR(entry.gb_per_s().value(), 38.895616, 1e-9);
  EXPECT_NEAR(entry.gain().value(), 0.2, 1e-12);
  const auto order = fastest_first(entry);
  ASSERT_EQ(order.size(), 3u);
  EXPECT_EQ(order[0]->config, "block=512");
  EXPECT_EQ(order[1]->config, "block=256");
  EXPECT_EQ(order[2]->config, "block=1024");
  const ReportEntry none = sample().entries[1];
  EXPECT_FALSE(none.to_floor() || none.gb_per_s() || none.gain());
  EXPECT_THAT(fastest_first(none), IsEmpty());
}

TEST(Report, UnknownFieldsArePassedOver) {
  std::string text = to_json(sample());
  text.insert(1, "\"later\": {\"x\": []},");
  EXPECT_EQ(message_of(text), "no error");
}

TEST(Report, PeersJoinTheEntryTheyBelongTo) {
  const std::string peers =
      R"json({"rows": 64, "vocab": 151936, "dtype": "bf16",
    "results": {"logp fwd: one": {"ms": 0.9, "peak_gib": 1.5},
                "logp fwd: two": {"error": "no memory"},
                "logp fwd+bwd: three": {"ms": 2.0, "peak_gib": 0},
                "floor: device copy (1R+1W)" : {
    "ms" : 0.1, "peak_gib" : 0
  }
}
})json";
  Report report = sample();
  add_peers(report.entries, peers, "p.json");
  ASSERT_EQ(report.entries[0].peers.size(), 2u);
  EXPECT_EQ(report.entries[0].peers[0].ms, 0.9);
  EXPECT_EQ(report.entries[0].peers[1].error, "no memory");
  EXPECT_THAT(report.entries[1].peers, IsEmpty());
  // Once more, a file takes the place of the one before.
  add_peers(report.entries, peers, "p.json");
  EXPECT_EQ(report.entries[0].peers.size(), 2u);
  EXPECT_THAT(testing::schema_faults(schema(), to_json(report)), IsEmpty());
  EXPECT_THROW(add_peers(report.entries, "{}", "p.json"), Error);
  EXPECT_THROW(add_peers(report.entries, "{", "p.json"), Error);
}

TEST(Report, PeersAreMeasuredAgainstWhatDoesTheSame) {
  Report report = sample();
  EXPECT_EQ(peer_measure(report, report.entries[0])->ms, 0.5);
  EXPECT_FALSE(peer_measure(report, report.entries[1]));  // without a time
  // Values and gradient are two entries here, one call there.
  ReportEntry gradient = report.entries[0];
  gradient.op = "kl_backward";
  ReportEntry values = report.entries[0];
  values.op = "kl";
  report.entries = {gradient};
  EXPECT_FALSE(peer_measure(report, report.entries[0]));
  report.entries.push_back(values);
  EXPECT_EQ(peer_measure(report, report.entries[0])->ms, 1.0);
  EXPECT_EQ(peer_measure(report, report.entries[0])->what, "kl + kl_backward");
}

TEST(Report, TimesAsText) {
  EXPECT_EQ(time_text(0.0123), "12.3 µs");
  EXPECT_EQ(time_text(0.0123, "us"), "12.3 us");
  EXPECT_EQ(time_text(1.2345), "1.234 ms");
  EXPECT_EQ(time_text(47.9), "47.90 ms");
  EXPECT_EQ(time_text(14249.7), "14.25 s");
}

TEST(Report, PageIsWholeAndSafe) {
  Report report = sample();
  add_peers(report.entries, R"({"rows": 64, "vocab": 151936, "dtype": "bf16",
    "results": {"logp fwd: a <script>": {"ms": 0.9, "peak_gib": 1},
                "logp fwd: b": {"error": "no <memory>"}}})",
            "p.json");
  const std::string page = to_html(report);
  EXPECT_THAT(page, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("block=512"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;no &amp; never&lt;/b&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  // Peers with their ratio, and why others have none.
  EXPECT_THAT(page, HasSubstr("<td class=\"n\">1.80</td>"));
  EXPECT_THAT(page, HasSubstr("no &lt;memory&gt;"));
  // Nothing from a network.
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_THAT(page, Not(HasSubstr(" src=")));
  // Every chart has its text.
  std::size_t charts = 0;
  for (std::size_t at = page.find("<svg"); at != std::string::npos;
       at = page.find("<svg", at + 1)) {
    ++charts;
    const std::string chart = page.substr(at, page.find("</svg>", at) - at);
    EXPECT_THAT(chart, HasSubstr("<title>"));
    EXPECT_THAT(chart, HasSubstr("<desc>"));
    EXPECT_THAT(chart, HasSubstr("role=\"img\""));
  }
  EXPECT_GE(charts, 2u);
  EXPECT_THAT(to_html(Report{}), HasSubstr("</html>"));
}

TEST(ReportDiff, SaysWhatChangedBeyondNoise) {
  const Report before = sample();
  Report after = sample();
  EXPECT_EQ(diff(before, after)[0].change, Change::kSame);
  after.entries[0].operation = timing(0.504);
  EXPECT_EQ(diff(before, after)[0].change, Change::kSame);
  after.entries[0].operation = timing(0.4);
  EXPECT_EQ(diff(before, after)[0].change, Change::kFaster);
  after.entries[0].operation = timing(0.7);
  EXPECT_EQ(diff(before, after)[0].change, Change::kSlower);
  after.entries[0].rows = 65;
  const auto entries = diff(before, after);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].change, Change::kOnlyOld);
  EXPECT_EQ(entries[2].change, Change::kOnlyNew);
}

}  // namespace
}  // namespace logpjit::tuning
