// Key text, its escapes, order, hash and inverse.
#include "cache/key.hpp"

#include <gtest/gtest.h>

#include "logpjit/error.hpp"

namespace logpjit::cache {
namespace {

TEST(KeyTest, SortsFieldsByName) {
  Key a;
  a.add("spec", "op=logp");
  a.add("arch", "sm_90a");
  Key b;
  b.add("arch", "sm_90a");
  b.add("spec", "op=logp");
  EXPECT_EQ(a.text(), "arch: sm_90a\nspec: op=logp\n");
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
}

TEST(KeyTest, HashIsFrozen) {
  Key key;
  key.add("arch", "sm_90a");
  key.add("spec", "op=logp");
  // Entry names depend on it.
  EXPECT_EQ(key.hash(), "fc2e303e2ec2c7041e4023611ae6be2a");
}

TEST(KeyTest, EscapesSoThatNoTwoKeysShareAText) {
  Key one;
  one.add("a", "x\nb: y");
  Key two;
  two.add("a", "x");
  two.add("b", "y");
  Key three;
  three.add("a", "x\\nb: y");
  EXPECT_EQ(one.text(), "a: x\\nb: y\n");
  EXPECT_EQ(three.text(), "a: x\\\\nb: y\n");
  EXPECT_NE(one.text(), two.text());
  EXPECT_NE(one.hash(), three.hash());
}

TEST(KeyTest, EscapesControlCharacters) {
  Key key;
  key.add("a", std::string_view("\r\t\0\x7f\x1b", 5));
  EXPECT_EQ(key.text(), "a: \\x0d\\x09\\x00\\x7f\\x1b\n");
}

TEST(KeyTest, LeavesOutTheCompilerOnly) {
  Key key;
  key.add("compiler", "nvrtc 13.0");
  key.add("compilers", "kept");
  key.add("arch", "compiler: no field");
  EXPECT_EQ(key.text_without_compiler(),
            "arch: compiler: no field\ncompilers: kept\n");
}

TEST(KeyTest, RefusesRepeatedAndMalformedNames) {
  Key key;
  key.add("arch", "sm_90a");
  EXPECT_THROW(key.add("arch", "sm_80"), Error);
  for (const char* name : {"", "Arch", "a b", "a:b", "a\n"}) {
    EXPECT_THROW(key.add(name, "x"), Error) << name;
  }
  EXPECT_EQ(key.text(), "arch: sm_90a\n");
}

TEST(KeyTest, ParsesItsOwnText) {
  Key key;
  key.add("spec", "a\\b\nc\r\x01: d \xff\xc3\xa9");
  key.add("empty", "");
  key.add("colon", ": : ");
  const auto parsed = Key::parse(key.text());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, key);
  EXPECT_EQ(parsed->hash(), key.hash());
  EXPECT_EQ(parsed->fields(), key.fields());
}

TEST(KeyTest, ParseRefusesWhatIsNotCanonical) {
  for (const char* text :
       {"a: b", "a b\n", "b: 1\na: 2\n", "a: 1\na: 2\n", ": x\n", "a: \\q\n",
        "a: \\x0a\n", "a: \\xzz\n", "a: tab\there\n", "a: \\\n", "\n", "a:b\n",
        "a: \\x4\n"}) {
    EXPECT_FALSE(Key::parse(text)) << text;
  }
  ASSERT_TRUE(Key::parse(""));
  EXPECT_EQ(Key::parse("")->hash(), Key().hash());
}

}  // namespace
}  // namespace logpjit::cache
