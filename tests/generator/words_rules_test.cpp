// Words that belong to one compiler.
#include "tests/generator/rule_case.hpp"

namespace logpjit::generator {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Words, RuleTest,
    testing::Values(
        Rule{"ExternC", "struct A", R"(extern "C" int x;
struct A)",
             "t.cuh:1:1: error: extern \"C\" is not allowed: the generator "
             "names kernels, leave it out"},
        Rule{"ExternCBlock", "struct A", R"(extern "C" { int x; }
struct A)",
             "t.cuh:1:1: error: extern \"C\" is not allowed: the generator "
             "names kernels, leave it out"},
        Rule{"ExternShared", "int x = 0;", "extern __shared__ float y[];",
             "t.cuh:6:47: error: extern __shared__ is not allowed: take "
             "dynamic shared memory from shared_memory<T>(byte_offset)"},
        Rule{"StaticShared", "int x = 0;", "__shared__ float y[4];",
             "t.cuh:6:47: error: '__shared__' belongs to one compiler: "
             "use shared_memory<T>(byte_offset) of the prelude"},
        Rule{"Assembly", "int x = 0;", R"(asm("nop");)",
             "t.cuh:6:47: error: inline assembly belongs in "
             "prelude/device.h: call a function of the prelude"},
        Rule{"AssemblyInMacro", "struct A", R"(#define NOP asm("nop")
struct A)",
             "t.cuh:1:13: error: inline assembly belongs in "
             "prelude/device.h: call a function of the prelude"},
        Rule{"InactiveAssembly", "int x = 0;", R"(
#if 0
asm volatile("nop");
#endif
)",
             "t.cuh:8:1: error: inline assembly belongs in "
             "prelude/device.h: call a function of the prelude"},
        Rule{"Barrier", "int x = 0;", "__syncthreads();",
             "t.cuh:6:47: error: '__syncthreads' belongs to one "
             "compiler: use sync_threads() of the prelude"},
        Rule{"CompilerMacro", "int x = 0;", R"(
#ifdef __CUDA_ARCH__
#endif
)",
             "t.cuh:7:8: error: '__CUDA_ARCH__' belongs to one compiler: "
             "use what the prelude offers instead"},
        Rule{"UnknownCompilerWord", "int x = 0;", "int x = __brev(1);",
             "t.cuh:6:55: error: '__brev' belongs to one compiler: use "
             "what the prelude offers instead"}),
    rule_name);

}  // namespace
}  // namespace logpjit::generator
