// What an experiment found: points of series, each with the paper's value beside it where the paper has one.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cepheus::sim {

struct Point {
  std::string series;
  double x = 0;
  double value = 0;  // the median of the seeds
  std::string unit;
  double low = 0, high = 0;     // of the seeds
  std::optional<double> paper;  // none: the paper has no number here
  bool is_course = false;       // one of many of a curve: not in the table
};

// How a series is drawn.
struct PlotAxes {
  std::string_view x, y;
  bool log_x = false, log_y = false;
  std::string_view plotted;  // the unit of the series that are drawn; others are in the table only
};

class Report {
 public:
  using Progress = std::function<void(const std::string&)>;
  Report(std::string experiment, Progress progress)
      : experiment_(std::move(experiment)), progress_(std::move(progress)) {}

  void add(const std::string& series, double x, double value, const std::string& unit,
           std::optional<double> paper = std::nullopt);
  // One value for each seed. Precondition: there is one.
  void add(const std::string& series, double x, std::vector<double> values, const std::string& unit,
           std::optional<double> paper = std::nullopt);
  // A point of a curve that is to be looked at: in JSON and drawings, not in the table.
  void draw(const std::string& series, double x, double value, const std::string& unit);
  // What is being done, for whoever waits.
  void say(const std::string& what) const;

  const std::string& experiment() const { return experiment_; }
  const std::vector<Point>& points() const { return points_; }

  // [{experiment, series, x, value, unit, low, high, paper}]: paper is a number or null.
  void write_json(std::ostream& out) const;
  // Series after series, in columns: series, x, value, range of the seeds, the paper's value.
  void write_table(std::ostream& out, std::string_view x_name) const;

 private:
  std::string experiment_;
  Progress progress_;
  std::vector<Point> points_;
};

double median(std::vector<double> values);

}  // namespace cepheus::sim
