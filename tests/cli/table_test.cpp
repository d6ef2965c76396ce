// Tables for people.
#include "cli/table.hpp"

#include <gtest/gtest.h>

namespace logpjit::cli {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"name", "ms"}, {1});
  table.add({"a", "10.5"});
  table.add({"longer", "3"});
  EXPECT_EQ(table.text(),
            "name      ms\n"
            "a       10.5\n"
            "longer     3\n");
}

TEST(Table, NoBlanksAtTheEndOfALine) {
  Table table({"a", "b"});
  table.add({"x", ""});
  EXPECT_EQ(table.text(), "a  b\nx\n");
}

}  // namespace
}  // namespace logpjit::cli
