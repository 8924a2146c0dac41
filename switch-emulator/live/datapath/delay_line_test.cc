#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "switch-emulator/live/datapath/transit.h"

namespace cepheus::live {
namespace {

wire::Instant at(std::int64_t ns) { return wire::Instant(wire::Duration(ns)); }

Flight flight(std::uint32_t link) {
  Flight f;
  f.hop.link = link;
  return f;
}

RC_GTEST_PROP(DelayLine, GivesFramesInOrderOfArrivalThenOfInsertion,
              (const std::vector<std::uint8_t>& arrivals)) {
  DelayLine line;
  std::multimap<std::int64_t, std::uint32_t> expected;  // keeps the order of equal keys
  for (std::uint32_t n = 0; n < arrivals.size(); ++n) {
    line.push(at(arrivals[n] % 8), flight(n));
    expected.emplace(arrivals[n] % 8, n);
  }
  for (const auto& [arrival, number] : expected) {
    RC_ASSERT(line.next_arrival() == at(arrival));
    Flight got;
    line.pop(got);
    RC_ASSERT(got.hop.link == number);
  }
  RC_ASSERT(line.size() == 0u);
  RC_ASSERT(line.next_arrival() == wire::kNever);
}

}  // namespace
}  // namespace cepheus::live
