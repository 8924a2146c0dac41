// Results of an experiment: points of series. A point may have the paper's number, an expected
// value from theory, and a note.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cepheus::sim {

struct Beside {
  std::optional<double> paper = {};     // a number in the paper's text, or the ratio of two of them
  std::optional<double> expected = {};  // from theory or from our own estimate, in no paper
  std::string note = {};                // the origin of the row, if it differs from the others
};

struct Point {
  std::string series;
  double x = 0;
  double value = 0;  // the median of the seeds
  std::string unit;
  double low = 0, high = 0;  // of the seeds
  Beside beside = {};
  bool is_curve = false;  // one of many points of a curve: not in the table
};

class Report {
 public:
  using Progress = std::function<void(const std::string&)>;
  Report(std::string experiment, Progress progress)
      : experiment_(std::move(experiment)), progress_(std::move(progress)) {}

  void add(const std::string& series, double x, double value, const std::string& unit,
           const Beside& beside = {});
  // One value for each seed. Precondition: there is at least one.
  void add(const std::string& series, double x, std::vector<double> values, const std::string& unit,
           const Beside& beside = {});
  // A point of a curve to be plotted: in JSON, not in the table.
  void draw(const std::string& series, double x, double value, const std::string& unit);
  // Reports progress to the user.
  void progress(const std::string& what) const;

  const std::vector<Point>& points() const { return points_; }

  // [{experiment, series, x, value, unit, low, high, paper, expected, note}]: paper and expected
  // are numbers or null, the note is a text.
  void write_json(std::ostream& out) const;
  // Series after series, in columns: series, x, value, range of the seeds, paper, expected, note.
  // Those of the last three that no row has are left out.
  void write_table(std::ostream& out, std::string_view x_name) const;
  // A Markdown table of one row: the first and the last point of a series for which the paper has a
  // number; otherwise those with an expected value; otherwise the series' own ends.
  void write_headline(std::ostream& out, std::string_view series, std::string_view verdict) const;

 private:
  std::string experiment_;
  Progress progress_;
  std::vector<Point> points_;
};

double median(std::vector<double> values);

// One figure of all runs.
template <typename Run>
std::vector<double> each(const std::vector<Run>& runs, double Run::*figure) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(run.*figure);
  return values;
}

}  // namespace cepheus::sim
