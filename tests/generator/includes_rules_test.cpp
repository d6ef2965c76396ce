// What templates may include.
#include "tests/generator/rule_case.hpp"

namespace logpjit::generator {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Includes, RuleTest,
    testing::Values(
        Rule{"SystemInclude", "struct A", R"(#include <cuda_fp16.h>
struct A)",
             "t.cuh:1:1: error: templates include \"common/...\" files "
             "only: copy what you need into one and include that"},
        Rule{"PlainInclude", "struct A", R"(#include "other.cuh"
struct A)",
             "t.cuh:1:1: error: templates include \"common/...\" files "
             "only: copy what you need into one and include that"},
        Rule{"PreludeInclude", "struct A", R"(#include "prelude/scan.h"
struct A)",
             "t.cuh:1:1: error: the prelude comes first by itself: "
             "remove this include"},
        Rule{"MissingInclude", "struct A", R"(#include "common/none.cuh"
struct A)",
             "t.cuh:1:1: error: no file 'common/none.cuh' in 'DIR': "
             "create it or correct the name"},
        Rule{"EscapingInclude", "struct A", R"(#include "common/../t.cuh"
struct A)",
             "t.cuh:1:1: error: templates include \"common/...\" files "
             "only: copy what you need into one and include that"},
        Rule{"MacroInclude", "struct A", R"(#define FILE "common/a.cuh"
#include FILE
struct A)",
             "t.cuh:2:1: error: templates include \"common/...\" files "
             "only: copy what you need into one and include that"},
        Rule{"EmptyInclude", "struct A", R"(#include ""
struct A)",
             "t.cuh:1:1: error: templates include \"common/...\" files "
             "only: copy what you need into one and include that"},
        Rule{"ImportDirective", "struct A", R"(#import "a.h"
struct A)",
             "t.cuh:1:1: error: templates include \"common/...\" files "
             "only: copy what you need into one and include that"},
        Rule{"InactiveInclude", "struct A", R"(#if 0
#include <vector>
#endif
struct A)",
             "t.cuh:2:1: error: templates include \"common/...\" files "
             "only: copy what you need into one and include that"}),
    rule_name);

}  // namespace
}  // namespace logpjit::generator
