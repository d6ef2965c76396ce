// The case file format: every key, and every way to get it wrong.
#include "tuning/cases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "logpjit/error.hpp"

namespace logpjit::tuning {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json minimal() {
  return Json::parse(R"({"id":"T1","source":["x#1"],"kind":"k","op":"logp+bwd",
    "dtype":"bf16","shape":[2,3],"strides":null,
    "logits":[[0,1,2],[3,4,5]],"ids":[0,2],"extra":{"grad_out":[1,2]},
    "expected":{"logp":[-2.4,-0.4],"tol":{"abs":0.1,"rel":0}}})");
}

Case parse_one(const Json& node) {
  return parse_cases(Json::array({node}).dump()).at(0);
}

std::string refusal(const Json& node) {
  try {
    parse_one(node);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  return "accepted";
}

TEST(Cases, AMinimalCase) {
  const Case one = parse_one(minimal());
  EXPECT_EQ(one.id, "T1");
  EXPECT_EQ(one.parts, (std::vector<std::string>{"logp", "bwd"}));
  EXPECT_TRUE(one.wants_gradient());
  EXPECT_EQ(one.dtype, DType::kBf16);
  EXPECT_EQ(one.rows(), 2);
  EXPECT_EQ(one.strides, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(one.storage_elements(), 6);
  EXPECT_EQ(one.upstream().logp, (std::vector<double>{1, 2}));
  EXPECT_EQ(one.expected.values.at("logp").size(), 2u);
}

TEST(Cases, EveryExtraKey) {
  Json node = minimal();
  node["shape"] = {1, 2, 3};
  node["strides"] = {12, 4, 1};
  node["ids"] = {{0, 2}, {1, 1}};
  node["expected"] = Json::object();
  node["extra"] = Json::parse(R"({
    "layout":{"storage_numel":20,"offset":3,"outside":"nan"},
    "grad_logp":[[1,2],[3,4]],"grad_entropy":{"gen":"const","value":0.5},
    "grad_kl":[1,1],"teacher":{"gen":"const","value":1},
    "temperature":[0.5,2],"row_mask":[1,0],"ids_per_row":2,"k":2,
    "shards":[[0,1],[1,1],[1,3]],"also_shards":[[[0,3]]],
    "shards_too":[[0,2],[2,3]],"run_with_dtypes":["fp32","bf16"],
    "run_with_id_dtypes":["int32","int64"],"procedure":"p",
    "timeout_seconds":10,"compile_seconds_max":5,"note":"n",
    "row_order":"r","ids_formula":"f"})");
  const Case one = parse_one(node);
  EXPECT_EQ(one.rows(), 2);
  EXPECT_EQ(one.storage_elements(), 20);
  EXPECT_EQ(one.extent(), 7);
  EXPECT_TRUE(one.layout->poison_outside);
  EXPECT_EQ(one.upstream().logp, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(one.upstream().entropy, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(one.temperature, (std::vector<double>{0.5, 2}));
  EXPECT_EQ(one.row_mask, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(one.shards.size(), 3u);
  EXPECT_EQ(one.other_shards.size(), 2u);
  EXPECT_EQ(one.dtypes.size(), 2u);
  EXPECT_EQ(one.id_dtypes.size(), 2u);
  EXPECT_EQ(one.timeout_s, 10);
  EXPECT_EQ(one.compile_s_max, 5);
  EXPECT_EQ(one.problem().ids_per_row, 2);
}

TEST(Cases, EveryExpectedKey) {
  Json node = minimal();
  node["extra"]["k"] = 1;
  node["extra"]["teacher"] = {{"gen", "const"}, {"value", 1}};
  node["expected"] = Json::parse(R"({"rows":[1],"logp":[-1],"entropy":["nan"],
    "kl_forward":["inf"],"kl_reverse":[0],"lse":[5],"topk_ids":[[2]],
    "topk_logp":[[-0.4]],"logp_temperature_2":[-1],
    "dlogits":[[0,0,0],[0,0,0]],"dlogits_rows":{"1":[1,2,3]},
    "dlogits_probe":[[1,2,0.5]],"dlogits_forward":[0,0,0,0,0,0],
    "dlogits_reverse":[0,0,0,0,0,0],"dlogits_logp":[0,0,0,0,0,0],
    "dlogits_entropy":[0,0,0,0,0,0],"dlogits_bf16_rne":[0,0,0,0,0,0],
    "dlogits_shape":[2,3],"exact_zero":[[0,1]],"exact_zero_rows":[1],
    "tol":{"abs":1,"rel":2},"tol_grad":{"abs":3,"rel":4},
    "policy":"undefined-row","note":"n","bug_would_give":{"logp":[null]},
    "also_acceptable":"documented error","behaviour":"b","invariants":["i"],
    "memory":{"x":1}})");
  const CaseExpected expected = parse_one(node).expected;
  EXPECT_EQ(expected.row(0), 1);
  EXPECT_EQ(expected.values.size(), 8u);
  EXPECT_EQ(expected.gradients.size(), 6u);
  EXPECT_EQ(expected.gradient_rows.at(1).size(), 3u);
  EXPECT_EQ(expected.gradient_probes.at(0).value, 0.5);
  EXPECT_EQ(expected.exact_zero.size(), 1u);
  EXPECT_EQ(expected.exact_zero_rows.size(), 1u);
  EXPECT_EQ(expected.tolerance.relative, 2);
  EXPECT_EQ(expected.gradient_tolerance.absolute, 3);
  EXPECT_EQ(expected.policy, CasePolicy::kUndefinedRow);
  EXPECT_EQ(expected.memory, R"({"x":1})");
}

TEST(Cases, MalformedFilesNameCaseAndPath) {
  const auto refused = [](auto change) {
    Json node = minimal();
    change(node);
    return refusal(node);
  };
  EXPECT_EQ(refused([](Json& n) { n["expected"]["logp"][1] = "x"; }),
            "case T1: /0/expected/logp/1: expected a number, found \"x\"");
  EXPECT_EQ(refused([](Json& n) { n["colour"] = 1; }),
            "case T1: /0/colour: is not a known key");
  EXPECT_THAT(refused([](Json& n) { n["extra"]["colour"] = 1; }),
              HasSubstr("/0/extra/colour: is not a known key"));
  EXPECT_THAT(refused([](Json& n) { n["expected"]["lopg"] = 1; }),
              HasSubstr("/0/expected/lopg: is not a known key"));
  EXPECT_EQ(refused([](Json& n) { n.erase("id"); }),
            "case number 0: /0: has no \"id\"");
  EXPECT_THAT(refused([](Json& n) { n["op"] = "logp+cosine"; }),
              HasSubstr("unknown part \"cosine\""));
  EXPECT_THAT(refused([](Json& n) { n["dtype"] = "int32"; }),
              HasSubstr("/0/dtype: is not fp32"));
  EXPECT_THAT(refused([](Json& n) {
                n["shape"] = {2, -3};
              }),
              HasSubstr("negative dimension"));
  EXPECT_THAT(refused([](Json& n) { n["shape"] = {6}; }),
              HasSubstr("/0/shape: is neither"));
  EXPECT_THAT(refused([](Json& n) {
                n["shape"] = {1L << 40, 1L << 40};
              }),
              HasSubstr("more elements than 64 bits"));
  EXPECT_THAT(refused([](Json& n) { n["strides"] = {3}; }),
              HasSubstr("one stride per dimension"));
  EXPECT_THAT(refused([](Json& n) { n["ids"] = {1}; }),
              HasSubstr("/0/ids: has 1 values, the shape wants 2"));
  EXPECT_THAT(refused([](Json& n) { n["ids"] = nullptr; }),
              HasSubstr("has logp, but the case has no ids"));
  EXPECT_THAT(refused([](Json& n) { n["logits"][0][0] = 0.1; }),
              HasSubstr("the value 0.1 is not exact in bf16"));
  EXPECT_THAT(refused([](Json& n) { n["expected"]["logp"] = {1}; }),
              HasSubstr("has 1 values, 2 are expected"));
  EXPECT_THAT(refused([](Json& n) {
                n["expected"]["kl_forward"] = {1, 1};
              }),
              HasSubstr("has a KL, but the case has no teacher"));
  EXPECT_THAT(refused([](Json& n) { n["expected"]["rows"] = {2}; }),
              HasSubstr("/0/expected/rows/0: is outside"));
  EXPECT_THAT(refused([](Json& n) { n["expected"]["tol"]["abs"] = -1; }),
              HasSubstr("0 or more"));
  EXPECT_THAT(refused([](Json& n) { n["extra"]["temperature"] = 0; }),
              HasSubstr("/0/extra/temperature: is not above 0"));
  EXPECT_THAT(refused([](Json& n) { n["extra"]["row_mask"] = {1}; }),
              HasSubstr("one value per row"));
  EXPECT_THAT(refused([](Json& n) {
                n["extra"]["shards"] = {{0, 1}, {2, 3}};
              }),
              HasSubstr("/0/extra/shards/1: does not follow on column 1"));
  EXPECT_THAT(refused([](Json& n) {
                n["extra"]["shards"] = {{0, 2}};
              }),
              HasSubstr("ends at column 2 of 3"));
  EXPECT_THAT(refused([](Json& n) {
                n["extra"]["layout"] = {
                    {"storage_numel", 6}, {"offset", 1}, {"outside", "nan"}};
              }),
              HasSubstr("the view goes past its storage"));
}

TEST(Cases, TwoCasesOfOneName) {
  EXPECT_THROW(parse_cases(Json::array({minimal(), minimal()}).dump()), Error);
}

TEST(Cases, NotAFile) {
  try {
    read_cases("/nonexistent/cases.json");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.message(), HasSubstr("/nonexistent/cases.json"));
  }
}

}  // namespace
}  // namespace logpjit::tuning
