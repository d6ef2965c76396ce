// Columns of text for people.
#include "cli/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace logpjit::cli {

Table::Table(std::vector<std::string> heading, std::vector<std::size_t> right)
    : rows_{std::move(heading)}, right_(std::move(right)) {}

void Table::add(std::vector<std::string> row) {
  rows_.push_back(std::move(row));
}

bool Table::is_right(std::size_t column) const {
  return std::find(right_.begin(), right_.end(), column) != right_.end();
}

std::vector<std::string> Table::lines() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::vector<std::string> lines;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      line += is_right(c) ? fmt::format("{:>{}}", row[c], widths[c])
                          : fmt::format("{:<{}}", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string Table::text() const {
  std::string text;
  for (const std::string& line : lines()) text += line + "\n";
  return text;
}

}  // namespace logpjit::cli
