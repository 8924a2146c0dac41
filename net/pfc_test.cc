#include "net/pfc.h"

#include <gtest/gtest.h>

#include "wire/mrp.h"

namespace cepheus::net {
namespace {

using namespace std::chrono_literals;

LinkConfig link_of(std::uint64_t gigabits, wire::Duration delay) {
  LinkConfig link;
  link.rate = wire::BitRate{gigabits * 1'000'000'000};
  link.delay = delay;
  return link;
}

// 2 us and a frame's 4284 bytes (343 ns) at 12.5 bytes a nanosecond, 4 ns for rounding, two frames.
TEST(Headroom, HoldsWhatIsOnTheWayWhenTheNeighbourIsToldToStop) {
  const LinkConfig link = link_of(100, 1us);
  EXPECT_EQ(headroom_for(link, link, 4224), 25'000u + 342 * 25 / 2 + 50 + 2 * 4224);
}

// At 1 Gb/s the pause waits for a frame of 1284 bytes (10.272 us) and 8 us on the way; the other way
// 10 Gb/s bring 1.25 bytes a nanosecond all the while.
TEST(Headroom, CountsTheWayBackAtItsOwnRate) {
  EXPECT_EQ(headroom_for(link_of(10, 2us), link_of(1, 6us), 1224),
            (8'000u + 10'272 + 4) * 5 / 4 + 2 * 1224);
}

TEST(Pause, IsForDataOnlyAndTakesItsTimeFromTheRate) {
  wire::Frame frame;
  emit_pause(frame, wire::mac_for(wire::Ipv4(10, 255, 0, 1)), true);
  EXPECT_EQ(class_of(frame), TrafficClass::kLink);
  EXPECT_EQ(frame.size(), 60u);
  EXPECT_EQ(data_pause(frame, wire::BitRate{1'000'000'000}), 65'535 * 512ns);
  emit_pause(frame, wire::mac_for(wire::Ipv4(10, 255, 0, 1)), false);
  EXPECT_EQ(data_pause(frame, wire::BitRate{1'000'000'000}), 0ns);
  wire::PauseFrame others;
  others.quanta[priority_of(TrafficClass::kControl)] = 7;
  others.emit(frame, {});
  EXPECT_FALSE(data_pause(frame, wire::BitRate{1'000'000'000}));
}

}  // namespace
}  // namespace cepheus::net
