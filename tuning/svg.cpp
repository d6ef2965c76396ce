// Charts as inline SVG. Narrow by design: a phone shows them unscaled, and
// labels stand above their bars.
#include "tuning/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace logpjit::tuning {
namespace {

constexpr double kWidth = 340;
constexpr double kRow = 32;
constexpr double kLine = 13;
/// Characters of a label's line.
constexpr std::size_t kFits = 50;
constexpr double kBarHeight = 11;
/// Left for the values behind the bars.
constexpr double kNoteWidth = 76;
constexpr double kStackNoteWidth = 124;
constexpr double kPlotHeight = 230;
constexpr double kPlotLeft = 48;
constexpr double kPlotBottom = 34;

/// The frame of a figure: SVG, title, description, and a visible caption.
std::string figure(std::string_view title, std::string_view description,
                   double height, const std::string& body) {
  return fmt::format(
      "<figure><svg role=\"img\" viewBox=\"0 0 {:.0f} {:.0f}\">"
      "<title>{}</title><desc>{}</desc>{}</svg>"
      "<figcaption><b>{}.</b> {}</figcaption></figure>\n",
      kWidth, height, escape_html(title), escape_html(description), body,
      escape_html(title), escape_html(description));
}

std::string text_at(double x, double y, std::string_view kind,
                    std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>",
                     x, y, kind, escape_html(text));
}

/// A label in lines that fit, broken after commas and blanks.
std::vector<std::string_view> lines_of(std::string_view label) {
  std::vector<std::string_view> lines;
  while (label.size() > kFits) {
    const std::size_t at = label.find_last_of(", ", kFits - 1);
    const std::size_t taken =
        at == std::string_view::npos || at == 0 ? kFits : at + 1;
    lines.push_back(label.substr(0, taken));
    label.remove_prefix(taken);
  }
  lines.push_back(label);
  return lines;
}

/// Writes the lines from `y` on, and moves it to the last one.
std::string label_at(double& y, std::string_view kind, std::string_view label) {
  std::string text;
  for (const std::string_view each : lines_of(label)) {
    if (!text.empty()) y += kLine;
    text += text_at(0, y + 12, kind, each);
  }
  return text;
}

std::string rectangle(double x, double y, double width, double height,
                      std::string_view kind) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "rx=\"2\" class=\"{}\"/>",
      x, y, std::max(width, 1.0), height, kind);
}

std::string line(double x1, double y1, double x2, double y2,
                 std::string_view kind) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
      "class=\"{}\"/>",
      x1, y1, x2, y2, kind);
}

std::string whisker(double low, double high, double y) {
  const double middle = y + kBarHeight / 2;
  return line(low, middle, high, middle, "whisker") +
         line(low, y + 2, low, y + kBarHeight - 2, "whisker") +
         line(high, y + 2, high, y + kBarHeight - 2, "whisker");
}

/// "1.5 GB"
std::string size_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

/// The least of 1, 2 and 5 times a power of ten that is not below `wanted`.
double round_step(double wanted) {
  if (!(wanted > 0)) return 1;
  const double unit = std::pow(10, std::floor(std::log10(wanted)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * unit >= wanted) return factor * unit;
  }
  return 10 * unit;
}

/// Linear y, logarithmic x.
class Plane {
 public:
  explicit Plane(const std::vector<Point>& points) {
    for (const Point& point : points) {
      low_ = std::min(low_, point.x);
      high_ = std::max(high_, point.x);
      top_ = std::max(top_, point.y);
    }
    // Whole decades, so that the ends are round numbers.
    low_ = std::pow(10, std::floor(std::log10(std::max(low_, 1.0))));
    high_ = std::pow(10, std::ceil(std::log10(std::max(high_, 10.0))));
    if (high_ <= low_) high_ = 10 * low_;
    step_ = round_step(top_ / 5);
    top_ = top_ > 0 ? 1.05 * top_ : 1;
  }
  double x(double value) const {
    const double part =
        std::log(std::max(value, low_) / low_) / std::log(high_ / low_);
    return kPlotLeft + part * (kWidth - kPlotLeft - 14);
  }
  double y(double value) const {
    const double whole = kPlotHeight - kPlotBottom - 12;
    return 12 + whole * (1 - value / top_);
  }
  std::string axes(std::string_view x_label, std::string_view y_label) const {
    std::string body;
    for (int i = 0; i * step_ <= top_; ++i) {
      const double value = i * step_;
      body += line(kPlotLeft, y(value), kWidth - 14, y(value), "grid");
      body += text_at(2, y(value) + 4, "tick", number_text(value));
    }
    for (double value = low_; value <= high_ * 1.001; value *= 10) {
      body += line(x(value), y(0), x(value), y(0) + 4, "grid");
      body += text_at(std::min(x(value) - 14, kWidth - 46), y(0) + 16, "tick",
                      size_text(value));
    }
    body += text_at(kPlotLeft, kPlotHeight - 3, "axis", x_label);
    return body + text_at(kPlotLeft + 4, 10, "axis", y_label);
  }

 private:
  double low_ = 1e18;
  double high_ = 1;
  double top_ = 0;
  double step_ = 1;
};

}  // namespace

std::string escape_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string bar_chart(std::string_view title, std::string_view description,
                      const std::vector<Bar>& bars,
                      const std::vector<Mark>& marks) {
  double most = 0;
  for (const Bar& bar : bars) most = std::max({most, bar.value, bar.high});
  for (const Mark& mark : marks) most = std::max(most, mark.value);
  const auto at = [&](double value) {
    return most > 0 ? value / most * (kWidth - kNoteWidth) : 0;
  };
  double y = 14.0 * static_cast<double>(marks.size()) + 4;
  std::string body;
  for (const Bar& bar : bars) {
    body +=
        label_at(y, bar.kind == "best" ? "label strong" : "label", bar.label);
    body += rectangle(0, y + 17, at(bar.value), kBarHeight, bar.kind);
    // Beside the bars only, so that no label is crossed out.
    for (const Mark& mark : marks) {
      body += line(at(mark.value), y + 16, at(mark.value), y + 31, "mark");
    }
    if (bar.high > bar.low) body += whisker(at(bar.low), at(bar.high), y + 17);
    body += text_at(std::max(at(bar.value), at(bar.high)) + 5, y + 27, "note",
                    bar.note);
    y += kRow;
  }
  double mark_y = 11;
  for (const Mark& mark : marks) {
    body += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"axis\" text-anchor=\"{}\">{}"
        "</text>",
        at(mark.value), mark_y, at(mark.value) > kWidth / 2 ? "end" : "start",
        escape_html(mark.label));
    mark_y += 14;
  }
  return figure(title, description, y + 4, body);
}

std::string scatter_chart(std::string_view title, std::string_view description,
                          std::string_view x_label, std::string_view y_label,
                          const std::vector<Point>& points) {
  const Plane plane(points);
  std::string body = plane.axes(x_label, y_label);
  for (const Point& point : points) {
    const double x = plane.x(point.x);
    const double y = plane.y(point.y);
    if (point.kind == "operation") {
      body += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"", x, y);
    } else {
      body += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"7\" height=\"7\"", x - 3.5,
          y - 3.5);
    }
    body += fmt::format(" class=\"point {}\"><title>{}</title>{}", point.kind,
                        escape_html(point.label),
                        point.kind == "operation" ? "</circle>" : "</rect>");
  }
  return figure(title, description, kPlotHeight, body);
}

std::string stack_chart(std::string_view title, std::string_view description,
                        const std::vector<std::string>& parts,
                        const std::vector<Stack>& stacks) {
  double most = 0;
  for (const Stack& stack : stacks) {
    double sum = 0;
    for (const double part : stack.parts) sum += part;
    most = std::max(most, sum);
  }
  const double head = 20;
  std::string body;
  double x = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    body += rectangle(x, 3, 10, 10, fmt::format("part{}", p));
    body += text_at(x + 14, 12, "axis", parts[p]);
    x += 30 + 7.0 * static_cast<double>(parts[p].size());
  }
  double y = head;
  for (const Stack& stack : stacks) {
    body += label_at(y, "label", stack.label);
    double left = 0;
    for (std::size_t p = 0; p < stack.parts.size(); ++p) {
      const double width =
          most > 0 ? stack.parts[p] / most * (kWidth - kStackNoteWidth) : 0;
      body +=
          rectangle(left, y + 17, width, kBarHeight, fmt::format("part{}", p));
      left += width;
    }
    body += text_at(left + 5, y + 27, "note", stack.note);
    y += kRow;
  }
  return figure(title, description, y + 4, body);
}

std::string number_text(double value) {
  constexpr double kLeast = 100;
  constexpr double kMost = 1e6;
  const bool whole = value >= kLeast && value < kMost;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

}  // namespace logpjit::tuning
