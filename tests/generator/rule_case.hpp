// One broken rule: an edit of a sound template, and all that the scan says.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/generator/scan_process.hpp"

namespace logpjit::generator {

/// Breaks no rule.
inline const std::string kBase =
    R"(struct A { float* out; long long n; };
/// Sums rows. Slowly.
template <typename Logit, int kBlock>
LOGPJIT_SPEC(Logit, "fp32 bf16")
LOGPJIT_TUNE(kBlock, "128 256")
LOGPJIT_KERNEL(kBlock, 1) sum(const A args) { int x = 0; }
)";

struct Rule {
  std::string name;
  std::string from;  ///< occurs in kBase once
  std::string to;
  std::string expected;  ///< stderr but for the last newline; DIR = the folder
};

inline void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

class RuleTest : public testing::TestWithParam<Rule> {};

inline std::string rule_name(const testing::TestParamInfo<Rule>& info) {
  return info.param.name;
}

/// `text` with the first `from` replaced.
std::string replace_once(std::string text, const std::string& from,
                         const std::string& to);

}  // namespace logpjit::generator
