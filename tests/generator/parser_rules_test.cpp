// The parser's own errors come through with their place.
#include "tests/generator/rule_case.hpp"

namespace logpjit::generator {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Parser, RuleTest,
    testing::Values(
        Rule{"DomainNotAString", R"("128 256")", "128",
             "t.cuh:5:1: error: expected ')'"},
        Rule{"ParseError", "int x = 0;", "int x = ;",
             "t.cuh:6:55: error: expected expression"},
        Rule{"UnknownName", "int x = 0;", "int x = y;",
             "t.cuh:6:55: error: use of undeclared identifier 'y'"},
        Rule{"UnknownBlock", "LOGPJIT_KERNEL(kBlock", "LOGPJIT_KERNEL(kBlok",
             "t.cuh:4:1: error: a domain without LOGPJIT_KERNEL: add "
             "that after the domains, or remove them\nt.cuh:6:1: error: "
             "use of undeclared identifier 'kBlok'"},
        Rule{"UnknownFieldType", "long long n", "longer n",
             "t.cuh:1:24: error: unknown type name 'longer'"}),
    rule_name);

}  // namespace
}  // namespace logpjit::generator
