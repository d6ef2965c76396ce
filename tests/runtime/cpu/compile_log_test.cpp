// Quoting source lines out of compilers' logs.
#include "runtime/compile_log.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace logpjit::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSource =
    "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten";

TEST(CompileLog, QuotesAroundAnErrorOfNvrtc) {
  EXPECT_EQ(quote_error_lines(kSource, "k.cu(5): error: bad thing\n", "k.cu"),
            "k.cu(5): error: bad thing\n"
            "      2 | two\n"
            "      3 | three\n"
            "      4 | four\n"
            ">     5 | five\n"
            "      6 | six\n"
            "      7 | seven\n"
            "      8 | eight\n");
}

TEST(CompileLog, QuotesAroundErrorsOfHostCompilers) {
  const std::string quote = quote_error_lines(kSource,
                                              "k.cpp: In function 'f':\n"
                                              "k.cpp:1:7: error: first\n"
                                              "k.cpp:3:1: warning: not this\n"
                                              "k.cpp:4:1: note: nor this\n"
                                              "k.cpp:10:1: fatal error: last\n",
                                              "k.cpp");
  EXPECT_THAT(quote,
              AllOf(HasSubstr(">     1 | one"), HasSubstr(">    10 | ten"),
                    Not(HasSubstr(">     3")), Not(HasSubstr("nor"))));
}

TEST(CompileLog, SameLineOnce) {
  const std::string quote = quote_error_lines(
      kSource, "k(5): error: a\nk(5): error: b\nk(6): error #20: c\r\n", "k");
  EXPECT_THAT(quote, AllOf(HasSubstr("error: a"), Not(HasSubstr("error: b")),
                           HasSubstr(">     6 | six")));
}

TEST(CompileLog, IgnoresWhatIsNoPosition) {
  for (const char* log :
       {"", "\n\n", "k(0): error: x", "k(11): error: x", "k(: error: x",
        "k(5: error: x", "k(99999999999999999999): error: x", "k: error: x",
        "other(5): error: x", "k(-1): error: x", "k:5", "error: no position",
        "k()", "k(5", "k:5: errors happen"}) {
    EXPECT_EQ(quote_error_lines(kSource, log, "k"), "") << log;
  }
  EXPECT_EQ(quote_error_lines("", "k(1): error: x", "k"), "");
}

TEST(CompileLog, StopsAfterAFewErrors) {
  std::string source;
  std::string log;
  for (int line = 1; line <= 100; ++line) {
    source += "x\n";
    log += fmt::format("k({}): error: e\n", line);
  }
  const std::string quote = quote_error_lines(source, log, "k");
  EXPECT_THAT(quote,
              AllOf(HasSubstr("k(8): error"), Not(HasSubstr("k(9): error"))));
}

TEST(CompileLog, FirstError) {
  EXPECT_EQ(first_error("k(5): warning: w\nk.cu(5): error: bad\n"),
            "error: bad");
  EXPECT_EQ(first_error("k:1:2: fatal error: gone"), "error: gone");
  EXPECT_EQ(first_error("\n\nsomething else\nmore"), "something else");
  EXPECT_EQ(first_error(""), "");
}

}  // namespace
}  // namespace logpjit::runtime
