#include "fabric-sim/core/box.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/roce.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::UnorderedElementsAreArray;

// A box that sends each frame that it takes to three receivers at the end of one cable.
struct Bench : Box::Core, FrameSink {
  static constexpr int kCopies = 3;
  explicit Bench(const BoxManners& manners) : box(simulator, pool, *this, manners, kCopies, 1) {}

  void arrive(std::uint32_t psn, std::size_t payload = 0) {
    wire::RoceHeaders headers;
    headers.bth.opcode = wire::Opcode::kRcAcknowledge;
    headers.bth.psn = wire::Psn(psn);
    wire::Frame frame;
    headers.emit(frame, payload);
    box.receive(simulator.now(), wire::PortId(0), frame);
  }
  void take_from_box(Instant now, wire::PortId, const wire::Frame& frame) override {
    taken.push_back(wire::RoceHeaders::parse(frame)->bth.psn.value());
    for (int i = 0; i < kCopies; ++i) box.transmit(now, cable, frame);
  }
  void receive(Instant, wire::PortId, const wire::Frame& frame) override {
    sent.push_back(wire::RoceHeaders::parse(frame)->bth.psn.value());
  }
  void run() { simulator.run(simulator.now() + 1s); }

  Simulator simulator{1'000'000};
  BufferPool pool{256};
  Cable cable{simulator, pool, "box>switch", net::LinkConfig(), *this, wire::PortId(0)};
  Box box;
  std::vector<std::uint32_t> taken, sent;
};

TEST(Box, DropsWhatItsReceiveRingCantHold) {
  Bench bench({.receive_ring = 2, .per_frame = 1us});
  for (std::uint32_t psn : {1, 2, 3}) bench.arrive(psn);
  EXPECT_EQ(bench.box.frames(), 2u);
  bench.run();
  EXPECT_THAT(bench.taken, ElementsAre(1, 2));
  EXPECT_EQ(bench.box.drops().receive_ring, 1u);
  EXPECT_EQ(bench.box.frames(), 0u);
}

TEST(Box, TakesNoFrameForWhoseCopiesItsTransmitRingLacksSpace) {
  Bench bench({.receive_ring = 8, .per_frame = 1us, .transmit_ring = 4, .per_copy = 5us});
  for (std::uint32_t psn : {1, 2}) bench.arrive(psn);
  bench.run();
  EXPECT_THAT(bench.sent, ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_EQ(bench.box.drops().transmit_ring, 0u);
}

TEST(Box, DropsCopiesOneByOneIfItDoesNotWait) {
  Bench bench({.receive_ring = 8,
               .per_frame = 1us,
               .transmit_ring = 4,
               .per_copy = 5us,
               .waits_for_space = false});
  for (std::uint32_t psn : {1, 2}) bench.arrive(psn);
  bench.run();
  EXPECT_THAT(bench.sent, ElementsAre(1, 1, 1, 2));
  EXPECT_EQ(bench.box.drops().transmit_ring, 2u);
}

TEST(Box, SendsByTwoQueuesOutOfOrder) {
  Bench bench({.receive_ring = 32, .swaps_copies = true});
  std::vector<std::uint32_t> all;
  for (std::uint32_t psn = 0; psn < 32; ++psn) {
    bench.arrive(psn);
    all.insert(all.end(), Bench::kCopies, psn);
  }
  bench.run();
  EXPECT_FALSE(std::ranges::is_sorted(bench.sent));
  EXPECT_THAT(bench.sent, UnorderedElementsAreArray(all));
}

TEST(Box, SeesNoRocePacketThatItsNicSwallows) {
  Bench bench({.swallows_roce = true});
  bench.arrive(1);
  EXPECT_THAT(bench.taken, ElementsAre());
  EXPECT_EQ(bench.box.drops().swallowed, 1u);
}

TEST(Box, DropsLongFrames) {
  Bench bench({.longest_frame = 40});
  bench.arrive(1);
  EXPECT_THAT(bench.taken, ElementsAre());
  EXPECT_EQ(bench.box.drops().too_long, 1u);
}

}  // namespace
}  // namespace cepheus::sim
