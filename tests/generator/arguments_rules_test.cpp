// What a kernel may take.
#include "tests/generator/rule_case.hpp"

namespace logpjit::generator {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Arguments, RuleTest,
    testing::Values(
        Rule{"NoArgument", "const A args", "",
             "t.cuh:6:27: error: kernel 'sum' takes 0 arguments: give it "
             "exactly one, a struct passed by value"},
        Rule{"TwoArguments", "const A args", "const A args, int more",
             "t.cuh:6:27: error: kernel 'sum' takes 2 arguments: give it "
             "exactly one, a struct passed by value"},
        Rule{"PointerArgument", "const A args", "const A* args",
             "t.cuh:6:40: error: kernel 'sum' takes 'const A *': pass "
             "one plain struct by value, the same for every template "
             "argument"},
        Rule{"ReferenceArgument", "const A args", "const A& args",
             "t.cuh:6:40: error: kernel 'sum' takes 'const A &': pass "
             "one plain struct by value, the same for every template "
             "argument"},
        Rule{"ScalarArgument", "const A args", "long long n",
             "t.cuh:6:41: error: kernel 'sum' takes 'long long': pass "
             "one plain struct by value, the same for every template "
             "argument"},
        Rule{"DependentArgument", "const A args", "Logit args",
             "t.cuh:6:37: error: kernel 'sum' takes "
             "'type-parameter-0-0': pass one plain struct by value, the "
             "same for every template argument"},
        Rule{"UnionArgument", "struct A", "union A",
             "t.cuh:6:39: error: kernel 'sum' takes 'const A': pass one "
             "plain struct by value, the same for every template "
             "argument"},
        Rule{"PointerToStruct", "float* out", "A* out",
             "t.cuh:1:15: error: argument field 'out' is of type 'A *': "
             "use a scalar, a pointer to a scalar or void, or a struct "
             "of these"},
        Rule{"PointerToPointer", "float* out", "float** out",
             "t.cuh:1:20: error: argument field 'out' is of type 'float "
             "**': use a scalar, a pointer to a scalar or void, or a "
             "struct of these"},
        Rule{"ArrayField", "float* out", "float out[2]",
             "t.cuh:1:18: error: argument field 'out' is of type "
             "'float[2]': use a scalar, a pointer to a scalar or void, "
             "or a struct of these"},
        Rule{"ReferenceField", "float* out", "float& out",
             "t.cuh:1:19: error: argument field 'out' is of type 'float "
             "&': use a scalar, a pointer to a scalar or void, or a "
             "struct of these"},
        Rule{"EnumField", "float* out;", "enum E { e } out;",
             "t.cuh:1:25: error: argument field 'out' is of type 'A::E': "
             "use a scalar, a pointer to a scalar or void, or a struct "
             "of these"},
        Rule{"BitField", "long long n;", "long long n : 3;",
             "t.cuh:1:34: error: argument field 'n' is a bit-field: use "
             "a scalar, a pointer to a scalar or void, or a struct of "
             "these"},
        Rule{"LongDoubleField", "long long n;", "long double n;",
             "t.cuh:1:36: error: argument field 'n' is of type 'long "
             "double': use a scalar, a pointer to a scalar or void, or a "
             "struct of these"},
        Rule{"FunctionPointerField", "float* out", "void (*out)()",
             "t.cuh:1:19: error: argument field 'out' is of type 'void "
             "(*)()': use a scalar, a pointer to a scalar or void, or a "
             "struct of these"},
        Rule{"NestedArray", "struct A { float* out;",
             R"(struct B { int i; char c[3]; };
struct A { B b;)",
             "t.cuh:1:24: error: argument field 'b.c' is of type "
             "'char[3]': use a scalar, a pointer to a scalar or void, or "
             "a struct of these"},
        Rule{"Destructor", "long long n; }", "long long n; ~A() {} }",
             "t.cuh:1:37: error: kernel arguments must be trivially "
             "copyable: remove this destructor"},
        Rule{"CopyConstructor", "long long n; }",
             "long long n; A(const A&) {} }",
             "t.cuh:1:37: error: kernel arguments must be trivially "
             "copyable: remove this copy or move constructor"},
        Rule{"Assignment", "long long n; }",
             "long long n; A& operator=(const A&); }",
             "t.cuh:1:40: error: kernel arguments must be trivially "
             "copyable: remove this assignment operator"},
        Rule{"VirtualFunction", "long long n; }",
             "long long n; virtual void f(); }",
             "t.cuh:1:50: error: kernel arguments must be trivially "
             "copyable: remove this virtual function"},
        Rule{"BaseClass", "struct A {", R"(struct B { int i; };
struct A : B {)",
             "t.cuh:2:12: error: kernel arguments must be trivially "
             "copyable: remove this base class"}),
    rule_name);

}  // namespace
}  // namespace logpjit::generator
