// How a kernel is declared.
#include "tests/generator/rule_case.hpp"

namespace logpjit::generator {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Kernels, RuleTest,
    testing::Values(
        Rule{"NotVoid", " sum(const A", "* sum(const A",
             "t.cuh:6:28: error: kernel 'sum' must return void, as "
             "LOGPJIT_KERNEL says: remove what follows it"},
        Rule{"Static", "LOGPJIT_KERNEL(kBlock", "static LOGPJIT_KERNEL(kBlock",
             "t.cuh:6:34: error: kernel 'sum' is invisible outside the "
             "file: remove `static` or the anonymous namespace"},
        Rule{"AnonymousNamespace", kBase, R"(namespace {
)" + kBase + R"(}
)",
             "t.cuh:7:27: error: kernel 'sum' is invisible outside the "
             "file: remove `static` or the anonymous namespace"},
        Rule{"NoComment", R"(/// Sums rows. Slowly.
)",
             "",
             "t.cuh:5:27: error: kernel 'sum' has no doc comment: say in "
             "a /// line what it computes"},
        Rule{"PlainComment", "/// Sums", "// Sums",
             "t.cuh:6:27: error: kernel 'sum' has no doc comment: say in "
             "a /// line what it computes"},
        Rule{"Declaration", " { int x = 0; }", ";",
             "t.cuh:6:27: error: kernel 'sum' has no body here: define "
             "it where it is declared"},
        Rule{"NotATemplate", R"(template <typename Logit, int kBlock>
LOGPJIT_SPEC(Logit, "fp32 bf16")
LOGPJIT_TUNE(kBlock, "128 256")
LOGPJIT_KERNEL(kBlock)",
             "LOGPJIT_KERNEL(128",
             "t.cuh:3:24: error: kernel 'sum' must be a function "
             "template: give it template parameters"},
        Rule{"Member", kBase, R"(struct S {
)" + kBase + R"(};
)",
             "t.cuh:7:27: error: kernel 'sum' must stand in a namespace, "
             "not in a class: move it out"},
        Rule{"MemberOfTemplate", kBase, R"(template <int m> struct S {
)" + kBase + R"(};
)",
             "t.cuh:7:27: error: kernel 'sum' must stand in a namespace, "
             "not in a class: move it out"},
        Rule{"DuplicateName", kBase, kBase + R"(namespace other {
)" + kBase + R"(}
)",
             "t.cuh:13:27: error: kernel 'sum' is already at t.cuh:6: "
             "rename one of them"},
        Rule{"NoKernel", R"(LOGPJIT_SPEC(Logit, "fp32 bf16")
LOGPJIT_TUNE(kBlock, "128 256")
LOGPJIT_KERNEL(kBlock, 1))",
             "void",
             "t.cuh:1:1: error: no kernel here: mark one with "
             "LOGPJIT_KERNEL, or keep the file in common/"}),
    rule_name);

}  // namespace
}  // namespace logpjit::generator
