// Columns of text for people.
#pragma once

#include <string>
#include <vector>

namespace logpjit::cli {

/// Rows of cells, each column as wide as its widest cell. The first row is the
/// heading. Columns named in `right` are aligned to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> heading,
                 std::vector<std::size_t> right = {});
  void add(std::vector<std::string> row);
  /// The heading, then each row, without line breaks.
  std::vector<std::string> lines() const;
  /// With a line break after each row.
  std::string text() const;

 private:
  bool is_right(std::size_t column) const;

  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> right_;
};

}  // namespace logpjit::cli
