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
TEST(Headroom, HoldsFramesOnTheWayWhenTheNeighbourIsPaused) {
  const LinkConfig link = link_of(100, 1us);
  EXPECT_EQ(headroom_for(link, link, 4224), 25'000u + 342 * 25 / 2 + 50 + 2 * 4224);
}

// At 1 Gb/s the pause waits for a frame of 1284 bytes (10.272 us) and takes 8 us to arrive.
// Meanwhile 10 Gb/s bring 1.25 bytes a nanosecond.
TEST(Headroom, CountsTheReturnPathAtItsOwnRate) {
  EXPECT_EQ(headroom_for(link_of(10, 2us), link_of(1, 6us), 1224),
            (8'000u + 10'272 + 4) * 5 / 4 + 2 * 1224);
}

class Pause : public testing::Test {
 protected:
  static constexpr wire::Instant kNow{1ms};
  static constexpr wire::BitRate kRate{512'000'000};  // a quantum takes a microsecond

  static wire::Frame pause_of(std::uint16_t quanta, std::size_t priority = 3) {
    wire::PauseFrame words;
    words.quanta[priority] = quanta;
    wire::Frame frame;
    words.emit(frame, wire::mac_for(wire::Ipv4(10, 255, 0, 1)));
    return frame;
  }
  PauseState data;
};

TEST_F(Pause, IsForDataOnlyAndTakesItsTimeFromTheRate) {
  wire::Frame frame;
  emit_pause(frame, wire::mac_for(wire::Ipv4(10, 255, 0, 1)), true);
  EXPECT_EQ(class_of(frame), TrafficClass::kLink);
  EXPECT_EQ(frame.size(), 60u);
  EXPECT_TRUE(data.on_frame(kNow, frame, wire::BitRate{1'000'000'000}));
  EXPECT_EQ(data.until(), kNow + 65'535 * 512ns);
  EXPECT_FALSE(data.on_frame(kNow, pause_of(0, 6), kRate)) << "another priority's";
  EXPECT_TRUE(data.is_paused(kNow));
  emit_pause(frame, wire::mac_for(wire::Ipv4(10, 255, 0, 1)), false);
  EXPECT_TRUE(data.on_frame(kNow, frame, kRate));
  EXPECT_FALSE(data.is_paused(kNow));
}

TEST_F(Pause, IsLengthenedByTheNextAndEndedByOneOfNoTime) {
  data.on_frame(kNow, pause_of(10), kRate);
  data.on_frame(kNow + 5us, pause_of(10), kRate);
  EXPECT_EQ(data.until(), kNow + 15us);
  data.on_frame(kNow + 12us, pause_of(0), kRate);
  EXPECT_EQ(data.until(), kNow + 12us);
  EXPECT_EQ(data.time(kNow + 13us), 12us);
  EXPECT_EQ(data.pauses(), 1u) << "a repeat is no other pause";
  data.on_frame(kNow + 20us, pause_of(1), kRate);
  EXPECT_EQ(data.time(kNow + 30us), 13us) << "its time is up";
  EXPECT_EQ(data.pauses(), 2u);
}

}  // namespace
}  // namespace cepheus::net
