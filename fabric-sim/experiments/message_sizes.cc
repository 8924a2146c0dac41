// A distribution is a list of points from 0 to 100 percent; draw() finds the interval of a uniform
// number and interpolates. Refused, with the line: other words than two numbers, and sizes outside
// 1 byte to 2^30. So are percentages that do not rise, sizes that fall, and a last point other than
// 100 %.
//
// Sources: HPCC's traffic distributions; the points that are ours are named below.
#include "fabric-sim/experiments/message_sizes.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace cepheus::sim {
namespace {

constexpr double kLargest = 1 << 30;  // largest message of a queue pair

tl::unexpected<wire::Error> invalid(const std::string& source, std::size_t line,
                                    const std::string& why) {
  return wire::invalid(source + ", line " + std::to_string(line) + ": " + why);
}

}  // namespace

wire::Result<MessageSizes> MessageSizes::parse(std::string_view text, const std::string& source) {
  std::istringstream lines{std::string(text)};
  std::vector<Point> points;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    if ((words >> std::ws).eof()) continue;
    Point p;
    std::string more;
    if (!(words >> p.bytes >> p.percent) || words >> more) {
      return invalid(source, number, "write a size in bytes and a percentage, '4096 25'");
    }
    if (!(p.bytes >= 1 && p.bytes <= kLargest)) {
      return invalid(source, number, "a message has from 1 to 2^30 bytes; write such a size first");
    }
    if (!(p.percent >= 0 && p.percent <= 100)) {
      return invalid(source, number, "the second number is a percentage; write one from 0 to 100");
    }
    if (points.empty() && p.percent > 0) points.push_back({p.bytes, 0});
    if (!points.empty() && (p.bytes < points.back().bytes || p.percent <= points.back().percent)) {
      return invalid(
          source, number,
          "sizes and percentages rise from line to line; sort them, each percentage once");
    }
    points.push_back(p);
  }
  if (points.empty() || points.back().percent != 100) {
    return invalid(source, number, "the last point is the largest message; end with 'BYTES 100'");
  }
  return MessageSizes(std::move(points));
}

wire::Result<MessageSizes> MessageSizes::from_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return wire::invalid(path + " can't be read; name a file with lines 'BYTES PERCENT'");
  }
  return parse(text.str(), path);
}

// Published percentiles. Those at 98 % and at 65, 85 and 97 % are ours, so that the means are the
// published 40.9 KB and 1.71 MB.
MessageSizes MessageSizes::alibaba_storage() {
  return MessageSizes({{500, 0},
                       {4'200, 25},
                       {6'300, 50},
                       {12'000, 75},
                       {31'000, 90},
                       {93'000, 95},
                       {300'000, 98},
                       {1'300'000, 99},
                       {2'000'000, 100}});
}

MessageSizes MessageSizes::web_search() {
  return MessageSizes({{1'000, 0},
                       {25'000, 25},
                       {73'000, 50},
                       {300'000, 65},
                       {1'500'000, 75},
                       {2'800'000, 85},
                       {5'000'000, 90},
                       {8'600'000, 95},
                       {12'000'000, 97},
                       {23'000'000, 99},
                       {30'000'000, 100}});
}

double MessageSizes::mean() const {
  double sum = 0;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const Point &a = points_[i - 1], &b = points_[i];
    sum += (a.bytes + b.bytes) / 2 * (b.percent - a.percent) / 100;
  }
  return sum;
}

std::uint32_t MessageSizes::draw(Random& random) const {
  const double percent = random.fraction() * 100;
  const auto above = std::ranges::upper_bound(points_, percent, {}, &Point::percent);
  const Point &a = *std::prev(above), &b = *above;
  const double part = (percent - a.percent) / (b.percent - a.percent);
  return static_cast<std::uint32_t>(std::lround(a.bytes + part * (b.bytes - a.bytes)));
}

}  // namespace cepheus::sim
