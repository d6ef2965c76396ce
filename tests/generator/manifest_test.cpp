// Domains, keys and look-up.
#include "generator/manifest.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "generator/canonical_integer.hpp"

namespace logpjit::generator {
namespace {

std::string key_of(const std::string& name) {
  TemplateParameter parameter;
  parameter.name = name;
  return parameter.key();
}

TEST(ParameterKey, TurnsConstantNamesIntoSnakeCase) {
  EXPECT_EQ(key_of("kBlock"), "block");
  EXPECT_EQ(key_of("kMinBlocks"), "min_blocks");
  EXPECT_EQ(key_of("Logit"), "logit");
  EXPECT_EQ(key_of("OtherLogit"), "other_logit");
  EXPECT_EQ(key_of("kTMADepth"), "tma_depth");
  EXPECT_EQ(key_of("kKL"), "kl");
  EXPECT_EQ(key_of("kL2Bytes"), "l2_bytes");
  EXPECT_EQ(key_of("kRows2D"), "rows2_d");
}

TEST(ParameterKey, LeavesOtherNamesAlone) {
  EXPECT_EQ(key_of("kind"), "kind");
  EXPECT_EQ(key_of("k"), "k");
  EXPECT_EQ(key_of("K"), "k");
  EXPECT_EQ(key_of("min_blocks"), "min_blocks");
  EXPECT_EQ(key_of("Min_Blocks"), "min_blocks");
  EXPECT_EQ(key_of("k2"), "k2");
  EXPECT_EQ(key_of(""), "");
}

TEST(Domain, ListContainsExactSpellings) {
  const Domain domain{.values = {"fp32", "bf16"}, .low = 0, .high = 0};
  EXPECT_TRUE(domain.contains("bf16"));
  EXPECT_FALSE(domain.contains("bf"));
  EXPECT_FALSE(domain.contains(""));
  EXPECT_FALSE(domain.contains("fp32 bf16"));
  EXPECT_EQ(domain.text(), "fp32 bf16");
}

TEST(Domain, RangeContainsItsEndsAndCanonicalIntegersOnly) {
  const Domain domain{.values = {}, .low = -1, .high = 1073741824};
  for (const char* in : {"-1", "0", "7", "1073741824"}) {
    EXPECT_TRUE(domain.contains(in)) << in;
  }
  for (const char* out :
       {"-2", "1073741825", "", "07", "-0", "+7", " 7", "7 ", "0x7", "7.0",
        "9223372036854775808", "99999999999999999999"}) {
    EXPECT_FALSE(domain.contains(out)) << out;
  }
  EXPECT_EQ(domain.text(), "-1..1073741824");
}

TEST(CanonicalInteger, ReadsAll64Bits) {
  EXPECT_EQ(parse_canonical_integer("-9223372036854775808"),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_canonical_integer("9223372036854775807"),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_canonical_integer("0"), 0);
  EXPECT_EQ(parse_canonical_integer("-9223372036854775809"), std::nullopt);
  EXPECT_EQ(parse_canonical_integer("-"), std::nullopt);
  EXPECT_EQ(parse_canonical_integer("--1"), std::nullopt);
  EXPECT_EQ(parse_canonical_integer("-01"), std::nullopt);
  EXPECT_EQ(parse_canonical_integer(std::string_view("1\0", 2)), std::nullopt);
}

TEST(Manifest, FindsAKernelAndItsTemplate) {
  Manifest manifest;
  manifest.templates.resize(2);
  manifest.templates[1].kernels.resize(2);
  manifest.templates[1].kernels[0].name = "one";
  manifest.templates[1].kernels[1].name = "two";
  ASSERT_NE(manifest.find("two"), nullptr);
  EXPECT_EQ(manifest.find("two"), &manifest.templates[1].kernels[1]);
  EXPECT_EQ(manifest.template_of("two"), &manifest.templates[1]);
  EXPECT_EQ(manifest.find("tw"), nullptr);
  EXPECT_EQ(manifest.template_of(""), nullptr);
}

}  // namespace
}  // namespace logpjit::generator
