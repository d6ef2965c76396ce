// Blanking comments and literals.
#include "tests/architecture/blank.hpp"

#include <gtest/gtest.h>

namespace logpjit::architecture {
namespace {

TEST(BlankCpp, LeavesCodeAlone) {
  const std::string text = "int a = b / c; // \nx";
  EXPECT_EQ(blank_cpp(text), "int a = b / c;    \nx");
}

TEST(BlankCpp, BlanksCommentsOfBothKinds) {
  EXPECT_EQ(blank_cpp("a/*b\nc*/d//e\nf"), "a   \n   d   \nf");
  EXPECT_EQ(blank_cpp("a/* never closed"), "a               ");
  EXPECT_EQ(blank_cpp("/* \" */x"), "       x") << "a quote in a comment";
}

TEST(BlankCpp, BlanksTheInsideOfLiterals) {
  EXPECT_EQ(blank_cpp(R"(f("asm", 'q');)"), R"(f("   ", ' ');)");
  EXPECT_EQ(blank_cpp(R"("a\"b" c)"), R"("    " c)") << "an escaped quote";
  EXPECT_EQ(blank_cpp(R"('\'' c)"), R"('  ' c)");
  EXPECT_EQ(blank_cpp(R"("//" c)"), R"("  " c)") << "no comment";
}

TEST(BlankCpp, BlanksRawLiterals) {
  EXPECT_EQ(blank_cpp("R\"(a\"b\nc)\" d"), "R\"(   \n )\" d");
  EXPECT_EQ(blank_cpp("R\"x(a)\" b)x\" d"), "R\"x(     )x\" d");
}

TEST(BlankCpp, AQuoteWithinANumberOpensNothing) {
  EXPECT_EQ(blank_cpp("1'000 asm"), "1'000 asm");
}

TEST(BlankCpp, ABrokenLiteralEndsWithItsLine) {
  EXPECT_EQ(blank_cpp("\"open\nasm"), "\"    \nasm");
}

TEST(BlankCpp, KeepsEveryLengthAndLineBreak) {
  const std::string text = "a\n\"b\\\nc\"\n/*\n*/\nR\"(\n)\"\n'";
  const std::string blanked = blank_cpp(text);
  ASSERT_EQ(blanked.size(), text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(blanked[i] == '\n', text[i] == '\n') << i;
  }
}

TEST(BlankHash, BlanksCommentsButNotQuotedHashes) {
  EXPECT_EQ(blank_hash("a # b\nc"), "a    \nc");
  EXPECT_EQ(blank_hash("a '#' b"), "a ' ' b");
}

}  // namespace
}  // namespace logpjit::architecture
