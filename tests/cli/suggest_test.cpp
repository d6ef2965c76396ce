// Which name a mistyped one suggests.
#include "cli/suggest.hpp"

#include <gtest/gtest.h>

namespace logpjit::cli {
namespace {

const std::vector<std::string> kOps = {"logp", "entropy", "logp+entropy"};

TEST(Suggest, OneOrTwoEditsAway) {
  EXPECT_EQ(nearest("lgop", kOps), "logp");
  EXPECT_EQ(nearest("logpp", kOps), "logp");
  EXPECT_EQ(nearest("entorpy", kOps), "entropy");
  EXPECT_EQ(nearest("logp+entropi", kOps), "logp+entropy");
}

TEST(Suggest, NothingNear) {
  EXPECT_EQ(nearest("cosine", kOps), std::nullopt);
  EXPECT_EQ(nearest("", {"ab"}), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

TEST(Suggest, TheNearestWins) {
  EXPECT_EQ(nearest("bf61", {"fp16", "bf16", "fp32"}), "bf16");
}

TEST(Suggest, AsASentence) {
  EXPECT_EQ(suggestion("lgop", kOps), "; did you mean 'logp'?");
  EXPECT_EQ(suggestion("cosine", kOps), "");
}

}  // namespace
}  // namespace logpjit::cli
