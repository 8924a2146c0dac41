#include "fabric-sim/experiments/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <ostream>

namespace cepheus::sim {
namespace {

constexpr double kWidth = 1000, kHeight = 520;
constexpr double kLeft = 90, kRight = 660, kTop = 50, kBottom = 460;
// Told apart by everybody (Okabe and Ito 2008).
constexpr std::array<const char*, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#000000", "#8c6d1f"};

std::string text_of(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

// "20 k" of 20000: marks of axes need no exponents.
std::string mark_text(double value) {
  constexpr std::array<const char*, 4> kPrefixes = {"", " k", " M", " G"};
  std::size_t prefix = 0;
  for (; std::abs(value) >= 1000 && prefix + 1 < kPrefixes.size(); ++prefix) value /= 1000;
  return text_of(value) + kPrefixes[prefix];
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

// One direction: values to places, and where the marks are.
class Scale {
 public:
  Scale(bool is_log, double from, double to) : is_log_(is_log), from_(from), to_(to) {}

  void cover(double value) {
    if (!shows(value)) return;
    const double v = transformed(value);
    low_ = empty_ ? v : std::min(low_, v);
    high_ = empty_ ? v : std::max(high_, v);
    empty_ = false;
  }
  bool shows(double value) const { return !is_log_ || value > 0; }
  // A linear axis starts at 0; whatever is shown keeps off the edges.
  void finish() {
    if (!is_log_) low_ = std::min(low_, 0.0);
    if (high_ - low_ < 1e-12) high_ = low_ + 1;
    high_ += (high_ - low_) / 20;
    if (is_log_) low_ -= (high_ - low_) / 20;
  }
  double place(double value) const {
    return from_ + (transformed(value) - low_) / (high_ - low_) * (to_ - from_);
  }
  std::vector<double> marks() const {
    std::vector<double> marks;
    const double step = is_log_ ? std::max(1.0, std::ceil((high_ - low_) / 8)) : linear_step();
    for (double at = std::ceil(low_ / step) * step; at <= high_; at += step) {
      marks.push_back(is_log_ ? std::pow(10, at) : at);
    }
    if (!is_log_ || marks.size() > 2) return marks;
    marks.clear();  // less than a few decades: 1, 2, 5
    for (double decade = std::floor(low_); decade <= high_; ++decade) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double value = digit * std::pow(10, decade);
        if (std::log10(value) >= low_ && std::log10(value) <= high_) marks.push_back(value);
      }
    }
    return marks;
  }

 private:
  double transformed(double value) const { return is_log_ ? std::log10(value) : value; }
  double linear_step() const {
    const double rough = (high_ - low_) / 6;
    const double decade = std::pow(10, std::floor(std::log10(rough)));
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit * decade >= rough) return digit * decade;
    }
    return 10 * decade;
  }

  bool is_log_;
  double from_, to_;
  double low_ = 0, high_ = 0;
  bool empty_ = true;
};

void write_text(std::ostream& out, double x, double y, const char* anchor, std::string_view text) {
  out << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\">"
      << escaped(text) << "</text>\n";
}

void write_frame(std::ostream& out, const Scale& x, const Scale& y, std::string_view title,
                 const PlotAxes& axes) {
  out << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (const double mark : x.marks()) {
    const double at = x.place(mark);
    out << "<path d=\"M" << at << ' ' << kTop << 'V' << kBottom << "\" stroke=\"#ddd\"/>\n";
    write_text(out, at, kBottom + 20, "middle", mark_text(mark));
  }
  for (const double mark : y.marks()) {
    const double at = y.place(mark);
    out << "<path d=\"M" << kLeft << ' ' << at << 'H' << kRight << "\" stroke=\"#ddd\"/>\n";
    write_text(out, kLeft - 8, at + 5, "end", mark_text(mark));
  }
  out << "<path d=\"M" << kLeft << ' ' << kTop << 'V' << kBottom << 'H' << kRight
      << "\" fill=\"none\" stroke=\"black\"/>\n";
  write_text(out, kLeft, kTop - 20, "start", title);
  write_text(out, (kLeft + kRight) / 2, kBottom + 45, "middle", axes.x);
  out << "<g transform=\"translate(22 " << (kTop + kBottom) / 2 << ") rotate(-90)\">";
  write_text(out, 0, 0, "middle", axes.y);
  out << "</g>\n";
}

}  // namespace

void write_svg(std::ostream& out, const Report& report, std::string_view title,
               const PlotAxes& axes) {
  std::vector<std::string> names;  // as they came
  std::map<std::string, std::vector<Point>> series;
  bool has_paper = false, has_expected = false;
  Scale x(axes.log_x, kLeft, kRight), y(axes.log_y, kBottom, kTop);
  for (const Point& p : report.points()) {
    if (p.unit != axes.plotted || !x.shows(p.x) || !y.shows(p.value)) continue;
    if (series[p.series].empty()) names.push_back(p.series);
    series[p.series].push_back(p);
    has_paper = has_paper || p.beside.paper.has_value();
    has_expected = has_expected || p.beside.expected.has_value();
    x.cover(p.x);
    for (const double v : {p.value, p.low, p.high, p.beside.paper.value_or(p.value),
                           p.beside.expected.value_or(p.value)}) {
      y.cover(v);
    }
  }
  x.finish();
  y.finish();
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << kWidth << ' ' << kHeight
      << "\" font-family=\"sans-serif\" font-size=\"14\">\n";
  write_frame(out, x, y, title, axes);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const char* const colour = kColours[i % kColours.size()];
    std::string line;
    for (const Point& p : series[names[i]]) {
      const double px = x.place(p.x);
      line += (line.empty() ? "M" : "L") + text_of(px) + ' ' + text_of(y.place(p.value));
      out << "<circle cx=\"" << px << "\" cy=\"" << y.place(p.value) << "\" r=\"3.5\" fill=\""
          << colour << "\"/>\n";
      if (p.low != p.high && y.shows(p.low)) {
        out << "<path d=\"M" << px << ' ' << y.place(p.low) << 'V' << y.place(p.high)
            << "\" stroke=\"" << colour << "\"/>\n";
      }
      if (p.beside.expected && y.shows(*p.beside.expected)) {
        out << "<circle cx=\"" << px << "\" cy=\"" << y.place(*p.beside.expected)
            << "\" r=\"6\" fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2\"/>\n";
      }
      if (p.beside.paper && y.shows(*p.beside.paper)) {
        const double py = y.place(*p.beside.paper);
        out << "<path d=\"M" << px - 5 << ' ' << py - 5 << "l10 10m0 -10l-10 10\" stroke=\""
            << colour << "\" stroke-width=\"2\"/>\n";
      }
    }
    out << "<path d=\"" << line << "\" fill=\"none\" stroke=\"" << colour
        << "\" stroke-width=\"2\"/>\n";
    const double at = kTop + 22 * static_cast<double>(i);
    out << "<path d=\"M" << kRight + 12 << ' ' << at << "h22\" stroke=\"" << colour
        << "\" stroke-width=\"2\"/>\n";
    write_text(out, kRight + 40, at + 5, "start", names[i]);
  }
  if (has_paper) write_text(out, kRight + 12, kBottom, "start", "crosses: the paper");
  if (has_expected) write_text(out, kRight + 12, kBottom - 22, "start", "rings: expected");
  out << "</svg>\n";
}

}  // namespace cepheus::sim
