// Charts as inline SVG, each with its text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace logpjit::tuning {

/// `<`, `>`, `&` and quotes as entities.
std::string escape_html(std::string_view text);

/// One bar, with a whisker from `low` to `high`.
struct Bar {
  std::string label{};
  std::string note{};  ///< at the bar's end: its value
  double value = 0;
  double low = 0;
  double high = 0;
  std::string kind{};  ///< CSS class: "best", "default", "other", "peer"
};
/// A line across all bars.
struct Mark {
  std::string label{};
  double value = 0;
};
/// Horizontal bars over zero, labels above them; `description` says in words
/// what a reader who cannot see it needs.
std::string bar_chart(std::string_view title, std::string_view description,
                      const std::vector<Bar>& bars,
                      const std::vector<Mark>& marks);

/// A point of a plot with a logarithmic x axis.
struct Point {
  double x = 0;
  double y = 0;
  std::string label{};
  std::string kind{};  ///< CSS class: "operation", "floor", "copy", "peer"
};
std::string scatter_chart(std::string_view title, std::string_view description,
                          std::string_view x_label, std::string_view y_label,
                          const std::vector<Point>& points);

/// Parts of one bar per row, stacked.
struct Stack {
  std::string label{};
  std::string note{};
  std::vector<double> parts{};
};
std::string stack_chart(std::string_view title, std::string_view description,
                        const std::vector<std::string>& parts,
                        const std::vector<Stack>& stacks);

/// Three digits, or all before the point: never an exponent for what people
/// count in thousands.
std::string number_text(double value);

}  // namespace logpjit::tuning
