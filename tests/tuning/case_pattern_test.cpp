// The generators of a case file.
#include "tuning/case_pattern.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "logpjit/error.hpp"

namespace logpjit::tuning {
namespace {

std::vector<double> row_of(const char* json, std::int64_t row,
                           std::int64_t rows = 3, std::int64_t columns = 4) {
  std::vector<double> values;
  LogitsPattern(JsonNode::parse(json), rows, columns).row(row, values);
  return values;
}

std::string refusal(const char* json) {
  try {
    LogitsPattern(JsonNode::parse(json), 3, 4);
  } catch (const Error& error) {
    return error.message();
  }
  return "accepted";
}

TEST(LogitsPattern, Const) {
  EXPECT_EQ(row_of(R"({"gen":"const","value":2.5})", 1),
            std::vector<double>(4, 2.5));
}

TEST(LogitsPattern, ModFollowsItsFormula) {
  const auto values = row_of(
      R"({"gen":"mod","a":131,"b":71,"c":5,"m":251,"div":16,"sub":8})", 2);
  for (std::int64_t j = 0; j < 4; ++j) {
    EXPECT_EQ(values[static_cast<std::size_t>(j)],
              static_cast<double>((2 * 131 + j * 71 + 5) % 251) / 16 - 8);
  }
}

TEST(LogitsPattern, ModDoesNotOverflow) {
  const std::int64_t row = (std::int64_t{1} << 62) + 3;
  const auto values =
      row_of(R"({"gen":"mod","a":131,"b":1,"c":0,"m":251,"div":1,"sub":0})",
             row, row + 1);
  EXPECT_EQ(values[0], static_cast<double>(row % 251 * 131 % 251));
}

TEST(LogitsPattern, Literal) {
  EXPECT_EQ(row_of("[[1,2],[3,\"-inf\"]]", 1, 2, 2),
            (std::vector<double>{3, -INFINITY}));
}

TEST(LogitsPattern, SetsApplyInOrder) {
  const char* json = R"({"gen":"const","value":0,"set":
      [["*",[1,3],"-inf"],[1,2,5],[[0,2],3,7]]})";
  EXPECT_EQ(row_of(json, 0), (std::vector<double>{0, -INFINITY, -INFINITY, 7}));
  EXPECT_EQ(row_of(json, 1), (std::vector<double>{0, -INFINITY, 5, 7}));
  EXPECT_EQ(row_of(json, 2), (std::vector<double>{0, -INFINITY, -INFINITY, 0}));
}

TEST(LogitsPattern, WhatIsRefused) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal("[[1,2],[3,4]]"), HasSubstr("has 4 values"));
  EXPECT_THAT(refusal(R"({"gen":"sin"})"), HasSubstr("/gen: is neither"));
  EXPECT_THAT(refusal(R"({"gen":"const"})"), HasSubstr("has no \"value\""));
  EXPECT_THAT(refusal(R"({"gen":"const","value":0,"x":1})"),
              HasSubstr("/x: is not a known key"));
  EXPECT_THAT(
      refusal(R"({"gen":"mod","a":1,"b":1,"c":0,"m":0,"div":1,"sub":0})"),
      HasSubstr("/m: must be 1 or more"));
  EXPECT_THAT(
      refusal(R"({"gen":"mod","a":1,"b":1,"c":0,"m":3,"div":0,"sub":0})"),
      HasSubstr("/div: must be above 0"));
  EXPECT_THAT(refusal(R"({"gen":"const","value":0,"set":[[3,0,1]]})"),
              HasSubstr("/set/0/0: is not within [0, 3)"));
  EXPECT_THAT(refusal(R"({"gen":"const","value":0,"set":[[0,[2,5],1]]})"),
              HasSubstr("/set/0/1: is not within [0, 4)"));
  EXPECT_THAT(refusal(R"({"gen":"const","value":0,"set":[[0,1]]})"),
              HasSubstr("/set/0: is not [row, column, value]"));
}

TEST(IdPattern, Generators) {
  const auto ids = [](const char* json) {
    const IdPattern pattern(JsonNode::parse(json), 3, 2);
    std::vector<std::int64_t> list;
    for (std::int64_t n = 0; n < 6; ++n)
      list.push_back(pattern.at(n / 2, n % 2));
    return list;
  };
  EXPECT_EQ(ids(R"({"gen":"const","value":5,"set":[[1,-100]]})"),
            (std::vector<std::int64_t>{5, 5, -100, -100, 5, 5}));
  EXPECT_EQ(ids(R"({"gen":"mod","a":2,"c":1,"m":4})"),
            (std::vector<std::int64_t>{1, 1, 3, 3, 1, 1}));
  EXPECT_EQ(ids("[[1,2],[3,4],[5,6]]").size(), 6u);
  EXPECT_THROW(ids("[1,2,3]"), Error);
  EXPECT_THROW(ids(R"({"gen":"const","value":5,"set":[[3,0]]})"), Error);
}

TEST(GradPattern, StorageWithZeroStride) {
  const auto grad = read_grad_pattern(
      JsonNode::parse(
          R"({"storage":[2,"nan"],"offset":0,"shape":[6],"strides":[0]})"),
      6);
  for (std::int64_t n = 0; n < 6; ++n) EXPECT_EQ(grad.at(n), 2);
  EXPECT_EQ(grad.count(), 6);
}

TEST(GradPattern, ViewsPastTheirStorageAreRefused) {
  EXPECT_THROW(
      read_grad_pattern(
          JsonNode::parse(
              R"({"storage":[2,1],"offset":1,"shape":[2],"strides":[1]})"),
          2),
      Error);
  EXPECT_THROW(read_grad_pattern(JsonNode::parse("[1,2]"), 3), Error);
}

}  // namespace
}  // namespace logpjit::tuning
