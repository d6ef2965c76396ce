// The project's own tree keeps its rules.
#include <gtest/gtest.h>

#include "tests/architecture/rules.hpp"

namespace logpjit::architecture {
namespace {

TEST(Project, KeepsItsRules) {
  const Tree tree = read_tree(LOGPJIT_SOURCE_DIR);
  ASSERT_GT(tree.files.size(), 30u) << "this is not the project's tree";
  for (const Violation& violation : check(tree)) {
    ADD_FAILURE() << violation.text();
  }
}

}  // namespace
}  // namespace logpjit::architecture
