// JSON values with their paths.
#include "tuning/json_node.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "logpjit/error.hpp"

namespace logpjit::tuning {
namespace {

using testing::HasSubstr;

template <typename Work>
std::string message_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  return "nothing was thrown";
}

TEST(JsonNode, NumbersAndTheirNames) {
  const auto node = JsonNode::parse(R"([1, -2.5, "inf", "-inf", "nan"])");
  const auto values = flat_numbers(node);
  EXPECT_EQ(values[1], -2.5);
  EXPECT_EQ(values[2], INFINITY);
  EXPECT_EQ(values[3], -INFINITY);
  EXPECT_TRUE(std::isnan(values[4]));
}

TEST(JsonNode, MessagesHoldThePath) {
  const auto node = JsonNode::parse(R"({"a": [{"b": "x"}, 1.5]})");
  const auto a = node.at("a").elements();
  EXPECT_EQ(message_of([&] { a[0].at("b").number(); }),
            "/a/0/b: expected a number, found \"x\"");
  EXPECT_EQ(message_of([&] { a[1].integer(); }),
            "/a/1: expected an integer, found 1.5");
  EXPECT_EQ(message_of([&] { a[0].at("c"); }), "/a/0: has no \"c\"");
  EXPECT_EQ(message_of([&] { a[1].at("c"); }),
            "/a/1: expected an object, found 1.5");
  EXPECT_EQ(message_of([&] { node.elements(); }).substr(0, 22),
            "/: expected an array, ");
  EXPECT_EQ(message_of([&] { node.allow_only({"b"}); }),
            "/a: is not a known key");
}

TEST(JsonNode, NullIsAbsent) {
  EXPECT_FALSE(JsonNode::parse(R"({"a": null})").find("a"));
}

TEST(JsonNode, SyntaxErrorsSayWhere) {
  EXPECT_THAT(message_of([] { JsonNode::parse("[1,\n 2"); }),
              HasSubstr("line 2"));
  EXPECT_THAT(message_of([] { JsonNode::parse(""); }), HasSubstr("not JSON"));
}

TEST(JsonNode, FlattensAnyNesting) {
  EXPECT_EQ(flat_integers(JsonNode::parse("[[1,[2]],[],3]")),
            (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(JsonNode, ValuesOutliveTheirRoot) {
  std::optional<JsonNode> member;
  {
    const auto root = JsonNode::parse(R"({"a": {"b": 7}})");
    member = root.at("a");
  }
  EXPECT_EQ(member->at("b").integer(), 7);
}

}  // namespace
}  // namespace logpjit::tuning
