#include "fabric-sim/core/cable.h"

#include <gtest/gtest.h>

#include <numeric>

#include "wire/icrc.h"
#include "wire/roce.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

class Sink : public FrameSink {
 public:
  explicit Sink(BufferPool& pool) : pool_(pool) {}
  void receive(Instant now, wire::PortId, const wire::Frame& frame) override {
    times.push_back(now);
    icrc_right.push_back(wire::check_icrc(frame));
    payload.assign(frame.payload().begin(), frame.payload().end());
    pool_.unref(frame.ref);
  }
  std::vector<Instant> times;
  std::vector<bool> icrc_right;
  std::vector<std::uint8_t> payload;

 private:
  BufferPool& pool_;
};

class CableTest : public testing::Test {
 protected:
  Cable make(const net::LinkConfig& link) {
    return Cable(simulator_, pool_, "a>b", link, sink_, wire::PortId(0));
  }
  // A data packet whose payload lies in the pool, with one reference.
  wire::Frame packet() {
    const wire::BufferRef buffer = pool_.acquire();
    const auto payload = pool_.bytes(buffer).first(256);
    std::iota(payload.begin(), payload.end(), std::uint8_t{0});
    wire::RoceHeaders headers;
    headers.bth.opcode = wire::Opcode::kRcSendOnly;
    headers.ip.source = wire::Ipv4(10, 0, 0, 1);
    headers.ip.destination = wire::Ipv4(10, 0, 0, 2);
    wire::Frame frame;
    headers.emit(frame, payload.size());
    frame.set_external_payload(payload, buffer);
    return frame;
  }

  Simulator simulator_{10'000};
  BufferPool pool_{1024};
  Sink sink_{pool_};
};

TEST_F(CableTest, DeliversAfterTheLinksDelayAndGivesTheBufferBack) {
  net::LinkConfig link;
  link.delay = 7us;
  Cable cable = make(link);
  cable.send(simulator_.now(), packet());
  EXPECT_EQ(cable.in_flight(), 1u);
  simulator_.run();
  ASSERT_EQ(sink_.times.size(), 1u);
  EXPECT_EQ(sink_.times[0], Instant{7us});
  EXPECT_TRUE(cable.is_balanced());
  EXPECT_EQ(pool_.in_use(), 0u);
}

TEST_F(CableTest, GivesTheBufferOfALostFrameBack) {
  net::LinkConfig link;
  link.loss = 1;
  Cable cable = make(link);
  cable.send(simulator_.now(), packet());
  simulator_.run();
  EXPECT_TRUE(sink_.times.empty());
  EXPECT_EQ(cable.link_counters().dropped_loss, 1u);
  EXPECT_TRUE(cable.is_balanced());
  EXPECT_EQ(pool_.in_use(), 0u);
}

TEST_F(CableTest, DeliversBothCopiesOfADuplicate) {
  net::LinkConfig link;
  link.duplicate = 1;
  Cable cable = make(link);
  cable.send(simulator_.now(), packet());
  simulator_.run();
  EXPECT_EQ(sink_.times.size(), 2u);
  EXPECT_TRUE(cable.is_balanced());
  EXPECT_EQ(pool_.in_use(), 0u);
}

TEST_F(CableTest, DamageIsSeenByTheIcrcAndLeavesTheOriginalAlone) {
  net::LinkConfig link;
  link.corrupt = 1;
  Cable cable = make(link);
  const wire::Frame original = packet();
  for (int i = 0; i < 200; ++i) {
    pool_.ref(original.ref);
    cable.send(simulator_.now(), original);
  }
  simulator_.run();
  // Few bits lie where the ICRC does not look (Ethernet addresses, TTL, ...): most damage must
  // show.
  const auto unseen = std::count(sink_.icrc_right.begin(), sink_.icrc_right.end(), true);
  EXPECT_LT(unseen, 20);
  EXPECT_GT(sink_.icrc_right.size(), 150u);
  EXPECT_EQ(cable.delivered() + cable.dropped_unreadable(), 200u);
  EXPECT_TRUE(cable.is_balanced());
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(original.payload()[i], i);
  pool_.unref(original.ref);
  EXPECT_EQ(pool_.in_use(), 0u);
}

TEST_F(CableTest, CopiesAPayloadThatIsNobodysBuffer) {
  Cable cable = make({});
  std::vector<std::uint8_t> own(256, 7);
  wire::Frame frame = packet();
  pool_.unref(frame.ref);
  frame.set_external_payload(own, wire::kNoBuffer);
  cable.send(simulator_.now(), frame);
  std::fill(own.begin(), own.end(), std::uint8_t{0});
  simulator_.run();
  EXPECT_EQ(sink_.payload, std::vector<std::uint8_t>(256, 7));
  EXPECT_EQ(pool_.in_use(), 0u);
}

}  // namespace
}  // namespace cepheus::sim
