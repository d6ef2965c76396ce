// The manifest's JSON: round trip, and every damage named by its path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "generator/manifest.hpp"
#include "logpjit/error.hpp"

namespace logpjit::generator {
namespace {

using testing::HasSubstr;

Manifest sample() {
  constexpr auto kLow = std::numeric_limits<std::int64_t>::min();
  constexpr auto kHigh = std::numeric_limits<std::int64_t>::max();
  const KernelManifest kernel{
      .name = "sum",
      .qualified_name = "logpjit::device::sum",
      .summary = "Says \"sum\" \\ and \xe2\x88\x91.",
      .file = "t.cuh",
      .line = 7,
      .parameters = {{"Logit",
                      ParameterKind::kType,
                      ParameterRole::kSpec,
                      {{"fp32", "bf16"}, 0, 0}},
                     {"kVocab",
                      ParameterKind::kInteger,
                      ParameterRole::kSpec,
                      {{}, kLow, kHigh}},
                     {"kOn",
                      ParameterKind::kBoolean,
                      ParameterRole::kTunable,
                      {{"0", "1"}, 0, 0}}},
      .argument_type = "logpjit::device::SumArguments",
      .argument_size = 16,
      .arguments = {{"rows.index", "const long long *", 0, 8},
                    {"n", "int", 8, 4}}};
  return {.templates = {{.file = "t.cuh",
                         .closure = {{"common/a.cuh", std::string(32, 'a')},
                                     {"t.cuh", std::string(32, '0')}},
                         .kernels = {kernel}},
                        {.file = "u.cuh", .closure = {}, .kernels = {}}}};
}

/// The message of what parsing `json` throws; "" if it throws nothing.
std::string refusal(std::string_view json) {
  try {
    parse_manifest(json);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
}

std::string damaged(const std::string& from, const std::string& to) {
  std::string json = to_json(sample());
  const std::size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) json.replace(at, from.size(), to);
  return refusal(json);
}

TEST(ManifestJson, SurvivesARoundTrip) {
  EXPECT_EQ(parse_manifest(to_json(sample())), sample());
  EXPECT_EQ(parse_manifest(to_json(Manifest{})), Manifest{});
  EXPECT_EQ(to_json(parse_manifest(to_json(sample()))), to_json(sample()));
}

TEST(ManifestJson, IsIndentedAndEndsALine) {
  EXPECT_EQ(to_json(Manifest{}),
            "{\n  \"version\": 1,\n  \"templates\": []\n}\n");
}

TEST(ManifestJson, ReplacesBytesThatAreNotUtf8) {
  Manifest manifest = sample();
  manifest.templates[0].kernels[0].summary = "caf\xe9.";
  const Manifest read = parse_manifest(to_json(manifest));
  EXPECT_EQ(read.templates[0].kernels[0].summary, "caf\xef\xbf\xbd.");
}

TEST(ManifestJson, RefusesTextThatIsNotJson) {
  const std::string whole = to_json(sample());
  for (std::size_t size = 0; size + 2 < whole.size(); size += 7) {
    EXPECT_THAT(refusal(whole.substr(0, size)), HasSubstr("not JSON")) << size;
  }
  EXPECT_THAT(refusal(whole + "x"), HasSubstr("not JSON from byte"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("not JSON"));
}

TEST(ManifestJson, RefusesAnotherVersion) {
  EXPECT_THAT(damaged("\"version\": 1", "\"version\": 2"),
              HasSubstr("expected version 1, found 2 at '/version'"));
  EXPECT_THAT(refusal("{}"), HasSubstr("no field 'version' at '/'"));
  EXPECT_THAT(refusal("[]"), HasSubstr("expected an object at '/'"));
}

TEST(ManifestJson, NamesThePathOfAMissingField) {
  EXPECT_THAT(damaged("\"summary\"", "\"sumary\""),
              HasSubstr("no field 'summary' at '/templates/0/kernels/0'"));
  EXPECT_THAT(
      damaged("\"low\"", "\"lo\""),
      HasSubstr(
          "no field 'low' at '/templates/0/kernels/0/parameters/1/domain'"));
}

TEST(ManifestJson, NamesThePathOfAWrongType) {
  EXPECT_THAT(damaged("\"line\": 7", "\"line\": \"7\""),
              HasSubstr("'/templates/0/kernels/0/line'"));
  EXPECT_THAT(damaged("\"offset\": 8", "\"offset\": 8.5"),
              HasSubstr("'/templates/0/kernels/0/arguments/1/offset'"));
  EXPECT_THAT(damaged("\"file\": \"u.cuh\"", "\"file\": null"),
              HasSubstr("expected a string at '/templates/1/file'"));
  EXPECT_THAT(damaged("\"kernels\": []", "\"kernels\": {}"),
              HasSubstr("expected an array at '/templates/1/kernels'"));
}

TEST(ManifestJson, RefusesValuesThatCannotBe) {
  EXPECT_THAT(damaged("\"line\": 7", "\"line\": 0"), HasSubstr("no line"));
  EXPECT_THAT(damaged("\"line\": 7", "\"line\": 4294967297"),
              HasSubstr("no line"));
  EXPECT_THAT(damaged("\"size\": 4", "\"size\": -4"),
              HasSubstr("not negative"));
  EXPECT_THAT(damaged("9223372036854775807", "9223372036854775808"),
              HasSubstr("64-bit integer"));
  EXPECT_THAT(damaged("9223372036854775807", "-9223372036854775808"), "");
  EXPECT_THAT(damaged("\"low\": -9223372036854775808,\n",
                      "\"low\": 9223372036854775807,\n"),
              "");
  EXPECT_THAT(damaged("\"high\": 9223372036854775807", "\"high\": 1e3"),
              HasSubstr("64-bit integer"));
  EXPECT_THAT(damaged("\"kind\": \"type\"", "\"kind\": \"Type\""),
              HasSubstr("unknown word 'Type'"));
  EXPECT_THAT(damaged("\"role\": \"tunable\"", "\"role\": \"\""),
              HasSubstr("unknown word ''"));
  EXPECT_THAT(damaged("aaaa", "aaa"), HasSubstr("32 hex digits"));
  EXPECT_THAT(damaged("aaaa", "AAAA"), HasSubstr("32 hex digits"));
  EXPECT_THAT(damaged("\"name\": \"n\"", "\"name\": \"\""),
              HasSubstr("not empty"));
}

TEST(ManifestJson, RefusesEmptyDomains) {
  EXPECT_THAT(damaged("[\n                  \"fp32\",\n"
                      "                  \"bf16\"\n                ]",
                      "[]"),
              HasSubstr("no values at "
                        "'/templates/0/kernels/0/parameters/0/domain/values'"));
  EXPECT_THAT(damaged("\"low\": -9223372036854775808,\n                \"high\""
                      ": 9223372036854775807",
                      "\"low\": 2, \"high\": 1"),
              HasSubstr("an empty range at"));
}

}  // namespace
}  // namespace logpjit::generator
