// Template parameters and their domains.
#include "tests/generator/rule_case.hpp"

namespace logpjit::generator {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Parameters, RuleTest,
    testing::Values(
        Rule{"NoDomain", R"(LOGPJIT_TUNE(kBlock, "128 256")
)",
             "",
             "t.cuh:3:31: error: template parameter 'kBlock' has no "
             "domain: add LOGPJIT_SPEC(kBlock, \"...\") or "
             "LOGPJIT_TUNE(kBlock, \"...\") after the template head"},
        Rule{"DomainOfNothing", "LOGPJIT_TUNE(kBlock, ",
             R"(LOGPJIT_SPEC(kVocab, "1..8")
LOGPJIT_TUNE(kBlock, )",
             "t.cuh:5:1: error: no template parameter 'kVocab' is left "
             "for this domain: correct the name or remove the domain"},
        Rule{"SecondDomain", "LOGPJIT_TUNE(kBlock, ",
             R"(LOGPJIT_SPEC(kBlock, "128")
LOGPJIT_TUNE(kBlock, )",
             "t.cuh:6:1: error: no template parameter 'kBlock' is left "
             "for this domain: correct the name or remove the domain"},
        Rule{"EmptyDomain", R"("128 256")", R"(" ")",
             "t.cuh:5:1: error: domain of 'kBlock': it is empty: list "
             "the values, or give a range like 1..1024"},
        Rule{"RepeatedValue", R"("128 256")", R"("128 256 128")",
             "t.cuh:5:1: error: domain of 'kBlock': 128 stands there "
             "twice: remove one"},
        Rule{"NotAnInteger", R"("128 256")", R"("128 big")",
             "t.cuh:5:1: error: domain of 'kBlock': 'big' is not a plain "
             "decimal integer: write one"},
        Rule{"LeadingZero", R"("128 256")", R"("0128")",
             "t.cuh:5:1: error: domain of 'kBlock': '0128' is not a "
             "plain decimal integer: write one"},
        Rule{"CommaList", R"("128 256")", R"("128,256")",
             "t.cuh:5:1: error: domain of 'kBlock': '128,256' is not a "
             "plain decimal integer: write one"},
        Rule{"EmptyRange", R"("128 256")", R"("9..3")",
             "t.cuh:5:1: error: domain of 'kBlock': the range 9..3 is "
             "empty: put the smaller end first"},
        Rule{"OpenRange", R"("128 256")", R"("1..")",
             "t.cuh:5:1: error: domain of 'kBlock': '' is not a plain "
             "decimal integer: write one"},
        Rule{"ThreeEndedRange", R"("128 256")", R"("1..2..3")",
             "t.cuh:5:1: error: domain of 'kBlock': '2..3' is not a "
             "plain decimal integer: write one"},
        Rule{"RangeBeyondInt", R"("128 256")", R"("1..2147483648")",
             "t.cuh:5:1: error: domain of 'kBlock': 2147483648 does not "
             "fit the parameter, which holds -2147483648..2147483647: "
             "change either"},
        Rule{"BooleanTwo", R"(int kBlock>
LOGPJIT_SPEC(Logit, "fp32 bf16")
LOGPJIT_TUNE(kBlock, "128 256"))",
             R"(bool kBlock>
LOGPJIT_SPEC(Logit, "fp32 bf16")
LOGPJIT_TUNE(kBlock, "0 2"))",
             "t.cuh:5:1: error: domain of 'kBlock': 2 does not fit the "
             "parameter, which holds 0..1: change either"},
        Rule{"BooleanRange", R"(int kBlock>
LOGPJIT_SPEC(Logit, "fp32 bf16")
LOGPJIT_TUNE(kBlock, "128 256"))",
             R"(bool kBlock>
LOGPJIT_SPEC(Logit, "fp32 bf16")
LOGPJIT_TUNE(kBlock, "0..1"))",
             "t.cuh:5:1: error: domain of 'kBlock': a range is for "
             "integer parameters only: list the values"},
        Rule{"NegativeUnsigned", R"(int kBlock>
LOGPJIT_SPEC(Logit, "fp32 bf16")
LOGPJIT_TUNE(kBlock, "128 256"))",
             R"(unsigned kBlock>
LOGPJIT_SPEC(Logit, "fp32 bf16")
LOGPJIT_TUNE(kBlock, "-1 1"))",
             "t.cuh:5:1: error: domain of 'kBlock': -1 does not fit the "
             "parameter, which holds 0..2147483647: change either"},
        Rule{"BadTypeName", R"("fp32 bf16")", R"("fp32 16bf")",
             "t.cuh:4:1: error: domain of 'Logit': '16bf' is not a "
             "type's name: write one like fp32"},
        Rule{"TypeRange", R"("fp32 bf16")", R"("1..2")",
             "t.cuh:4:1: error: domain of 'Logit': a range is for "
             "integer parameters only: list the values"},
        Rule{"TunedType", "LOGPJIT_SPEC(Logit", "LOGPJIT_TUNE(Logit",
             "t.cuh:4:1: error: 'Logit' is a type, and types cannot be "
             "tuned: use LOGPJIT_SPEC"},
        Rule{"ParameterPack", "typename Logit", "typename... Logit",
             "t.cuh:3:23: error: template parameter 'Logit' must be a "
             "type, a bool or an integer of 16 bits or more: change it"},
        Rule{"UnnamedParameter", "typename Logit,", "typename Logit, int,",
             "t.cuh:3:30: error: a template parameter has no name: give "
             "it one, and a LOGPJIT_SPEC or LOGPJIT_TUNE"},
        Rule{"PointerParameter", "int kBlock>", "int* kBlock>",
             "t.cuh:3:32: error: template parameter 'kBlock' must be a "
             "type, a bool or an integer of 16 bits or more: change it"},
        Rule{"TemplateTemplate", "typename Logit",
             "template <typename> class Logit",
             "t.cuh:3:37: error: template parameter 'Logit' must be a "
             "type, a bool or an integer of 16 bits or more: change it"},
        Rule{"SameKey", "typename Logit, int kBlock>",
             R"(typename Logit, int kBlock, int Block>
LOGPJIT_SPEC(Block, "1"))",
             "t.cuh:3:43: error: template parameter 'Block' is the "
             "second with the key 'block': rename it"}),
    rule_name);

}  // namespace
}  // namespace logpjit::generator
