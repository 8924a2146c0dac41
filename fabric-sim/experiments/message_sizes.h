// Sizes of applications' messages: a distribution by points, linear between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fabric-sim/core/random.h"
#include "wire/result.h"

namespace cepheus::sim {

class MessageSizes {
 public:
  struct Point {
    double bytes = 0;
    double percent = 0;  // of messages of at most this size
  };

  // A line for each point, "BYTES PERCENT", both rising, the last one at 100; # begins a comment.
  // Percentages below the first point's have the first point's size. kInvalid: the error names the
  // line and the remedy.
  static wire::Result<MessageSizes> parse(std::string_view text, const std::string& source);
  static wire::Result<MessageSizes> from_file(const std::string& path);
  // Through published means and percentiles: block storage at Alibaba, web search (both as HPCC's
  // simulator has them).
  static MessageSizes alibaba_storage();
  static MessageSizes web_search();

  double mean() const;
  std::uint32_t largest() const { return static_cast<std::uint32_t>(points_.back().bytes); }
  std::uint32_t draw(Random& random) const;

 private:
  explicit MessageSizes(std::vector<Point> points) : points_(std::move(points)) {}

  std::vector<Point> points_;  // from 0 % to 100 %
};

}  // namespace cepheus::sim
