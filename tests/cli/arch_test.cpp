// Names of architectures.
#include "cli/arch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "logpjit/error.hpp"

namespace logpjit::cli {
namespace {

TEST(Arch, ComputeCapability) {
  EXPECT_EQ(parse_arch("sm_90a").device.major, 9);
  EXPECT_EQ(parse_arch("sm_103a").device.minor, 3);
  EXPECT_EQ(parse_arch("sm_120f").device.major, 12);
  EXPECT_FALSE(parse_arch("sm_80").is_cpu());
  EXPECT_TRUE(parse_arch("cpu").is_cpu());
}

TEST(Arch, SharedMemoryOfABlock) {
  const auto kib = [](const char* text) {
    return parse_arch(text).device.shared_bytes_per_block / 1024;
  };
  EXPECT_EQ(kib("sm_75"), 64);
  EXPECT_EQ(kib("sm_80"), 163);
  EXPECT_EQ(kib("sm_86"), 99);
  EXPECT_EQ(kib("sm_89"), 99);
  EXPECT_EQ(kib("sm_90a"), 227);
  EXPECT_EQ(kib("sm_103a"), 227);
  EXPECT_EQ(kib("sm_120a"), 99);
  EXPECT_EQ(kib("sm_999"), 48);
  EXPECT_EQ(kib("cpu"), 227);
}

TEST(Arch, WhatIsNone) {
  for (const char* text : {"", "sm_", "sm_x", "sm_9", "sm_90b", "sm_90aa",
                           "90a", "compute_90", "sm_-90", "SM_90"}) {
    EXPECT_THROW(parse_arch(text), Error) << text;
  }
  try {
    parse_arch("sm90a");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), testing::HasSubstr("did you mean 'sm_90a'?"));
  }
}

}  // namespace
}  // namespace logpjit::cli
