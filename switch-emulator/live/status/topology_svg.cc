// A drawing of a fabric: floors from the hosts up, cables by kind and payload, a colour for each
// group's tree. Positions are computed once, then everything is written in the order of its layers.
// Names are escaped for XML. Bounds: kHostsInARow hosts in a row, kMostNamed groups in the legend;
// colours repeat after six.
#include <algorithm>
#include <array>
#include <cmath>

#include "switch-emulator/live/status/text_table.h"
#include "switch-emulator/live/status/topology_graph.h"

namespace cepheus::live {
namespace {

using Cable = TopologyGraph::Cable;

// In units of the drawing, about a pixel each.
constexpr double kHostGap = 30, kSwitchGap = 14, kFloor = 110, kHostRow = 34, kMargin = 24;
constexpr double kSwitchHeight = 24, kLetter = 7.2, kHostRadius = 7;
constexpr std::size_t kHostsInARow = 16;
constexpr std::size_t kMostNamed = 8;  // groups in the legend

// Okabe and Ito 2008: distinguishable for the colour-blind.
constexpr std::array<const char*, 6> kColours = {"#0072b2", "#e69f00", "#009e73",
                                                 "#cc79a7", "#56b4e9", "#d55e00"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) {
    out += c == '&'   ? "&amp;"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  }
  return out;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return (unit == 0 ? std::to_string(bytes) : decimal(value)) + " " + kUnits[unit];
}

struct Point {
  double x = 0, y = 0;
};

class Drawing {
 public:
  explicit Drawing(const FabricStatus& status) : status_(status), graph_(status) { lay_out(); }

  std::string whole() {
    std::string cables, lines, nodes;
    for (std::size_t c = 0; c < graph_.cables.size(); ++c) cables += cable(c);
    for (std::size_t t = 0; t < graph_.trees.size(); ++t) lines += tree(t);
    for (std::size_t c = 0; c < graph_.cables.size(); ++c) {
      if (graph_.cables[c].to == TopologyGraph::kNone) nodes += host(c);
    }
    for (std::size_t s = 0; s < status_.switches.size(); ++s) nodes += switch_box(s);
    const std::string legend_text = legend();
    const std::string size = decimal(width_) + " " + decimal(height_);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size +
           "\" role=\"img\" aria-label=\"" + std::to_string(status_.switches.size()) +
           " switches, " + std::to_string(hosts_) + " hosts, " +
           std::to_string(graph_.trees.size()) + " groups\">\n" + kStyle + cables + lines + nodes +
           legend_text + "</svg>\n";
  }

 private:
  static constexpr const char* kStyle =
      "<style>\n"
      "svg { background: #fff; font: 12px sans-serif; }\n"
      "line { stroke: #b8bec6; fill: none; }\n"
      ".dark { stroke: #555; stroke-dasharray: 2 4; }\n"
      ".cut { stroke: #c00020; stroke-dasharray: 8 5; stroke-width: 2.5; }\n"
      "rect { fill: #eef1f5; stroke: #5b6570; }\n"
      "circle { fill: #fff; stroke: #5b6570; stroke-width: 1.5; }\n"
      "text { fill: #20252b; text-anchor: middle; }\n"
      ".legend { text-anchor: start; }\n"
      "@media (prefers-color-scheme: dark) {\n"
      "  svg { background: #16191d; }\n"
      "  line { stroke: #4a525c; }\n"
      "  .dark { stroke: #aaa; }\n"
      "  .cut { stroke: #ff5a6e; }\n"
      "  rect { fill: #262c33; stroke: #9aa4af; }\n"
      "  circle { fill: #16191d; stroke: #9aa4af; }\n"
      "  text { fill: #e6e9ec; }\n"
      "}\n"
      "</style>\n";

  double box_width(std::size_t s) const {
    return 16 + kLetter * static_cast<double>(printable(status_.switches[s].name).size());
  }

  // Switches with hosts are above these, in their order; the others are spread over the width.
  void lay_out() {
    const std::size_t count = status_.switches.size();
    at_.resize(count);
    ends_.resize(graph_.cables.size());
    std::vector<std::vector<std::size_t>> hosts(count), floors(graph_.top() + 1);
    for (std::size_t c = 0; c < graph_.cables.size(); ++c) {
      if (graph_.cables[c].to == TopologyGraph::kNone) hosts[graph_.cables[c].from].push_back(c);
    }
    std::size_t rows = 0;
    double x = kMargin;
    for (std::size_t s = 0; s < count; ++s) {
      floors[graph_.floors[s]].push_back(s);
      if (graph_.floors[s] != 1) continue;
      const std::size_t in_row = std::min(hosts[s].size(), kHostsInARow);
      const double wide = std::max(box_width(s), static_cast<double>(in_row) * kHostGap);
      at_[s].x = x + wide / 2;
      for (std::size_t h = 0; h < hosts[s].size(); ++h) {
        const double from_middle = static_cast<double>(h % kHostsInARow) -
                                   static_cast<double>(std::max<std::size_t>(in_row, 1) - 1) / 2;
        ends_[hosts[s][h]] = {at_[s].x + from_middle * kHostGap,
                              static_cast<double>(h / kHostsInARow)};
      }
      rows = std::max(rows, (hosts[s].size() + kHostsInARow - 1) / kHostsInARow);
      hosts_ += hosts[s].size();
      x += wide + kSwitchGap;
    }
    width_ = x - kSwitchGap + kMargin;
    for (std::size_t f = 2; f < floors.size(); ++f) {
      double needed = 2 * kMargin;
      for (const std::size_t s : floors[f]) needed += box_width(s) + kSwitchGap;
      width_ = std::max(width_, needed);
    }
    width_ = std::max(width_, 360.0);
    const double ground = kMargin + static_cast<double>(graph_.top()) * kFloor;
    for (std::size_t f = 1; f < floors.size(); ++f) {
      for (std::size_t i = 0; i < floors[f].size(); ++i) {
        Point& p = at_[floors[f][i]];
        p.y = ground - static_cast<double>(f) * kFloor + kSwitchHeight / 2;
        if (f == 1) continue;
        p.x = width_ * (static_cast<double>(i) + 0.5) / static_cast<double>(floors[f].size());
      }
    }
    for (Point& p : ends_) p.y = ground - kFloor / 4 + p.y * kHostRow;
    height_ = ground + static_cast<double>(rows) * kHostRow + kMargin +
              18 * static_cast<double>(std::min(graph_.trees.size(), kMostNamed + 1));
  }

  Point far_end(std::size_t c) const {
    const Cable& cable = graph_.cables[c];
    return cable.to == TopologyGraph::kNone ? ends_[c] : at_[cable.to];
  }
  std::string line(std::size_t c, double shift, const std::string& attributes,
                   const std::string& title) const {
    const Point a = at_[graph_.cables[c].from], b = far_end(c);
    return "<line " + attributes + " x1=\"" + decimal(a.x + shift) + "\" y1=\"" + decimal(a.y) +
           "\" x2=\"" + decimal(b.x + shift) + "\" y2=\"" + decimal(b.y) + "\"><title>" +
           escaped(title) + "</title></line>\n";
  }

  std::string name_of(std::size_t c) const {
    const Cable& cable = graph_.cables[c];
    return status_.switches[cable.from].name + " - " + cable.name;
  }

  // Thicker with more payload; a factor of a thousand is four widths.
  std::string cable(std::size_t c) const {
    const Cable& cable = graph_.cables[c];
    const char* kind = to_string(cable.state);
    const double width = 1 + std::log10(1 + static_cast<double>(cable.payload_bytes) / 1e4);
    const std::string note =
        cable.state == TopologyGraph::State::kUp ? "" : std::string(", ") + kind;
    return line(c, 0, std::string("class=\"") + kind + "\" stroke-width=\"" + decimal(width) + "\"",
                name_of(c) + ": " + bytes_text(cable.payload_bytes) + " of payload" + note);
  }

  // Side by side, so that all trees over one cable are visible.
  std::string tree(std::size_t t) const {
    const double shift =
        3.5 * static_cast<double>(t % kColours.size()) -
        1.75 * static_cast<double>(std::min(graph_.trees.size(), kColours.size()) - 1);
    std::string text;
    for (const std::size_t c : graph_.trees[t].cables) {
      text += line(
          c, shift,
          std::string("style=\"stroke: ") + kColours[t % kColours.size()] + "; stroke-width: 3\"",
          "group " + graph_.trees[t].group.id.to_string());
    }
    return text;
  }

  std::string host(std::size_t c) const {
    const Point p = ends_[c];
    return "<circle cx=\"" + decimal(p.x) + "\" cy=\"" + decimal(p.y) + "\" r=\"" +
           decimal(kHostRadius) + "\"/><text x=\"" + decimal(p.x) + "\" y=\"" + decimal(p.y + 20) +
           "\">" + escaped(graph_.cables[c].name) + "</text>\n";
  }

  std::string switch_box(std::size_t s) const {
    const double wide = box_width(s);
    return "<rect x=\"" + decimal(at_[s].x - wide / 2) + "\" y=\"" +
           decimal(at_[s].y - kSwitchHeight / 2) + "\" width=\"" + decimal(wide) + "\" height=\"" +
           decimal(kSwitchHeight) + "\" rx=\"4\"/><text x=\"" + decimal(at_[s].x) + "\" y=\"" +
           decimal(at_[s].y + 4) + "\">" + escaped(status_.switches[s].name) + "</text>\n";
  }

  std::string legend() const {
    std::string text;
    double y =
        height_ - 10 - 18 * static_cast<double>(std::min(graph_.trees.size(), kMostNamed + 1) - 1);
    for (std::size_t t = 0; t < graph_.trees.size() && t <= kMostNamed; ++t, y += 18) {
      const fabric::GroupView& group = graph_.trees[t].group;
      std::string label = "group " + group.id.to_string() +
                          (group.source.is_unset() ? "" : ", from " + group.source.to_string());
      if (t == kMostNamed) {
        label = "and " + std::to_string(graph_.trees.size() - t) + " more";
      } else {
        text += "<line x1=\"" + decimal(kMargin) + "\" y1=\"" + decimal(y - 4) + "\" x2=\"" +
                decimal(kMargin + 24) + "\" y2=\"" + decimal(y - 4) +
                "\" style=\"stroke: " + kColours[t % kColours.size()] + "; stroke-width: 3\"/>";
      }
      text += "<text class=\"legend\" x=\"" + decimal(kMargin + 32) + "\" y=\"" + decimal(y) +
              "\">" + escaped(label) + "</text>\n";
    }
    return text;
  }

  const FabricStatus& status_;
  const TopologyGraph graph_;
  std::vector<Point> at_;    // switches
  std::vector<Point> ends_;  // hosts, by cable
  std::size_t hosts_ = 0;
  double width_ = 0, height_ = 0;
};

}  // namespace

std::string topology_svg(const FabricStatus& status) { return Drawing(status).whole(); }

}  // namespace cepheus::live
