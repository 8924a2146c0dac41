// Points are kept in the order of add() and sorted by series only for output. Several values become
// their median, with the lowest and the highest. Numbers have four digits, whole ones all of
// theirs. A range in a paper has no number: the note "paper: ..." takes its place in the headline.
#include "fabric-sim/experiments/report.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

namespace cepheus::sim {
namespace {

// Four digits are more than the precision of these measurements; sizes in bytes are whole.
std::string number(double value) {
  std::array<char, 32> text{};
  const bool is_whole = value == static_cast<double>(static_cast<std::int64_t>(value));
  std::snprintf(text.data(), text.size(), is_whole ? "%.0f" : "%.4g", value);
  return text.data();
}

std::string number_or_dash(const std::optional<double>& value) {
  return value ? number(*value) : "-";
}

// "": none. A range in the paper becomes a note, since a point has one number.
std::string paper_text(const Point& p) {
  constexpr std::string_view kRange = "paper: ";
  if (p.beside.paper) return number(*p.beside.paper);
  return p.beside.note.starts_with(kRange) ? p.beside.note.substr(kRange.size()) : "";
}

std::string expected_text(const Point& p) {
  return p.beside.expected ? number(*p.beside.expected) : "";
}

std::string no_text(const Point&) { return "-"; }

// Of a table: cells are aligned to the right (the first one to the left), the note follows them.
struct Row {
  std::vector<std::string> cells;
  std::string note;
};

// Series after series, in the order of their first points.
std::vector<Point> by_series(const std::vector<Point>& points) {
  std::vector<Point> sorted;
  for (const Point& first : points) {
    const auto same = [&](const Point& p) { return p.series == first.series; };
    if (std::any_of(sorted.begin(), sorted.end(), same)) continue;
    std::copy_if(points.begin(), points.end(), std::back_inserter(sorted), same);
  }
  return sorted;
}

}  // namespace

double median(std::vector<double> values) {
  assert(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void Report::add(const std::string& series, double x, double value, const std::string& unit,
                 const Beside& beside) {
  points_.push_back({series, x, value, unit, value, value, beside});
}

void Report::draw(const std::string& series, double x, double value, const std::string& unit) {
  points_.push_back({series, x, value, unit, value, value, {}, true});
}

void Report::add(const std::string& series, double x, std::vector<double> values,
                 const std::string& unit, const Beside& beside) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  points_.push_back({series, x, median(values), unit, *low, *high, beside});
}

void Report::progress(const std::string& what) const {
  if (progress_) progress_(experiment_ + ": " + what);
}

void Report::write_json(std::ostream& out) const {
  using nlohmann::json;
  const auto or_null = [](const std::optional<double>& value) {
    return value ? json(*value) : json();
  };
  json rows = json::array();
  for (const Point& p : points_) {
    rows.push_back({{"experiment", experiment_},
                    {"series", p.series},
                    {"x", p.x},
                    {"value", p.value},
                    {"unit", p.unit},
                    {"low", p.low},
                    {"high", p.high},
                    {"paper", or_null(p.beside.paper)},
                    {"expected", or_null(p.beside.expected)},
                    {"note", p.beside.note}});
  }
  out << rows.dump(1) << '\n';
}

void Report::write_table(std::ostream& out, std::string_view x_name) const {
  const std::vector<Point> points = by_series(points_);
  const auto any = [&](auto&& has) { return std::any_of(points.begin(), points.end(), has); };
  const bool has_paper = any([](const Point& p) { return p.beside.paper.has_value(); });
  const bool has_expected = any([](const Point& p) { return p.beside.expected.has_value(); });
  const bool has_note = any([](const Point& p) { return !p.beside.note.empty(); });
  std::vector<Row> rows{{{"series", std::string(x_name), "value", "low..high"}, "note"}};
  if (has_paper) rows[0].cells.emplace_back("paper");
  if (has_expected) rows[0].cells.emplace_back("expected");
  for (const Point& p : points) {
    if (p.is_curve) continue;
    const std::string range = p.low == p.high ? "" : number(p.low) + ".." + number(p.high);
    Row row{{p.series, number(p.x), number(p.value) + ' ' + p.unit, range}, p.beside.note};
    if (has_paper) row.cells.push_back(number_or_dash(p.beside.paper));
    if (has_expected) row.cells.push_back(number_or_dash(p.beside.expected));
    rows.push_back(row);
  }
  if (!has_note) rows[0].note.clear();
  std::vector<std::size_t> width(rows[0].cells.size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < width.size(); ++i) {
      width[i] = std::max(width[i], row.cells[i].size());
    }
  }
  for (const Row& row : rows) {
    std::string line = row.cells[0] + std::string(width[0] - row.cells[0].size(), ' ');
    for (std::size_t i = 1; i < width.size(); ++i) {
      line += "  " + std::string(width[i] - row.cells[i].size(), ' ') + row.cells[i];
    }
    if (!row.note.empty()) line += "  " + row.note;
    out << line << '\n';
  }
}

void Report::write_headline(std::ostream& out, std::string_view series,
                            std::string_view verdict) const {
  const auto ends = [](const std::string& first, const std::string& last) {
    return first == last ? first : first + ", " + last;
  };
  std::string paper = "-", ours = "-";
  for (const auto beside : {paper_text, expected_text, no_text}) {
    std::vector<Point> points;
    std::copy_if(points_.begin(), points_.end(), std::back_inserter(points), [&](const Point& p) {
      return p.series == series && !p.is_curve && !beside(p).empty();
    });
    if (points.empty()) continue;
    const Point &first = points.front(), &last = points.back();
    paper = ends(beside(first), beside(last)) + (beside == expected_text ? " expected" : "");
    ours = ends(number(first.value), number(last.value)) + ' ' + last.unit;
    break;
  }
  out << "| what | paper | ours | verdict |\n|---|---|---|---|\n| " << series << " | " << paper
      << " | " << ours << " | " << verdict << " |\n";
}

}  // namespace cepheus::sim
