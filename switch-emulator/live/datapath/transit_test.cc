#include "switch-emulator/live/datapath/transit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "wire/roce.h"

namespace cepheus::live {
namespace {

using namespace std::chrono_literals;
using wire::Instant;

constexpr Instant kStart{std::chrono::hours(1)};
constexpr std::size_t kHosts = 3;
constexpr std::size_t kPayload = 512;  // more than a frame holds inline

class TransitTest : public testing::Test, public Transit::Arrivals {
 protected:
  void SetUp() override { ASSERT_TRUE(pools_.pool_for(getuid())); }
  void arrive(const wire::Frame& frame, const Hop& /*hop*/, Instant now) override {
    arrived_.push_back(now);
    const auto payload = frame.payload();
    payloads_.emplace_back(payload.begin(), payload.end());
  }
  std::uint32_t add(const net::LinkConfig& config, Transit::Kind kind = Transit::Kind::kUplink) {
    return transit_.add(config, kind, drops_);
  }
  // A frame with a payload of zeroes in the host's own area.
  void send(std::uint32_t link, fabric::SenderNo host = 0) {
    wire::RoceHeaders headers;
    headers.bth.opcode = wire::Opcode::kRcSendOnly;
    wire::Frame frame;
    headers.emit(frame, kPayload);
    frame.payload_len = kPayload;
    const fabric::PoolGeometry& geometry = pools_.geometry();
    const std::uint64_t slot = host * geometry.area_bytes() + next_slot_++ * geometry.slot_bytes;
    ASSERT_TRUE(pools_.accept(0, host, slot, frame));
    transit_.transmit(frame, {link, {host}}, kStart);
    for (const std::uint8_t byte : frame.payload()) ASSERT_EQ(byte, 0);
    pools_.drop(frame.ref);
  }
  std::size_t land_until(Instant now) {
    const std::size_t before = arrived_.size();
    while (transit_.next_arrival() <= now) transit_.land_next(now);
    return arrived_.size() - before;
  }
  std::uint32_t in_use() const {
    std::uint32_t sum = 0;
    for (std::uint32_t area = 0; area <= kHosts; ++area) sum += pools_.in_use(0, area);
    return sum;
  }

  fabric::PayloadPools pools_{fabric::PoolGeometry::for_hosts(kHosts, 1024)};
  Transit transit_{pools_, kHosts, *this};
  LinkSideDrops drops_;
  std::uint64_t next_slot_ = 0;
  std::vector<Instant> arrived_;
  std::vector<std::vector<std::uint8_t>> payloads_;
};

TEST_F(TransitTest, DeliversAFrameAtOnceWithoutADelay) {
  send(add({}));
  EXPECT_EQ(arrived_, std::vector{kStart});
  EXPECT_EQ(in_use(), 0u);
}

TEST_F(TransitTest, NeverEntersASwitchWithinTheOutputsOfAnother) {
  send(add({}, Transit::Kind::kTrunk));
  EXPECT_TRUE(arrived_.empty());
  EXPECT_EQ(land_until(kStart), 1u);
}

TEST_F(TransitTest, KeepsAPayloadUntilItsFrameHasArrived) {
  net::LinkConfig far;
  far.delay = 1ms;
  send(add(far));
  EXPECT_EQ(transit_.next_arrival(), kStart + 1ms);
  EXPECT_EQ(in_use(), 1u);
  EXPECT_EQ(land_until(kStart + 1ms), 1u);
  EXPECT_EQ(in_use(), 0u);
}

TEST_F(TransitTest, CopiesDamagedFramesAndLeavesTheOriginalAlone) {
  net::LinkConfig damaging;
  damaging.corrupt = 1;
  const std::uint32_t link = add(damaging);
  constexpr int kFrames = 50;
  for (int n = 0; n < kFrames; ++n) send(link);
  const auto damaged = std::ranges::count_if(payloads_, [](const auto& payload) {
    return std::ranges::any_of(payload, [](std::uint8_t byte) { return byte != 0; });
  });
  EXPECT_GT(damaged, kFrames / 2) << "most bits are the payload's";
  EXPECT_EQ(arrived_.size() + drops_.corrupt, std::size_t{kFrames});
  EXPECT_EQ(in_use(), 0u);
}

TEST_F(TransitTest, LeavesOthersSpaceUnderWay) {
  net::LinkConfig far;
  far.delay = 1s;
  const std::uint32_t link = add(far);
  const auto put = [&](fabric::SenderNo host) {
    wire::Frame frame;
    wire::RoceHeaders headers;
    headers.emit(frame, 0);
    frame.set_inline_payload({});
    transit_.transmit(frame, {link, {host}}, kStart);
  };
  for (std::size_t n = 0; n < FlightAccount::kMost; ++n) put(0);
  EXPECT_NEAR(static_cast<double>(drops_.delay_line_full), FlightAccount::kMost / 2, 1);
  EXPECT_FALSE(transit_.has_space({.host = 0}));
  EXPECT_TRUE(transit_.has_space({.host = 1}));
  const std::uint64_t before = drops_.delay_line_full;
  put(1);
  EXPECT_EQ(drops_.delay_line_full, before);
}

TEST_F(TransitTest, SharesTheQueueBeforeASlowLinkAmongSenders) {
  net::LinkConfig slow;
  slow.rate = wire::BitRate{1'000'000};
  slow.queue_bytes = 64 << 10;
  const std::uint32_t link = add(slow, Transit::Kind::kDownlink);
  for (int n = 0; n < 200; ++n) send(link, 0);
  EXPECT_GT(drops_.queue_share, 0u);
  const std::uint64_t before = drops_.queue_share;
  send(link, 1);
  EXPECT_EQ(drops_.queue_share, before);
}

}  // namespace
}  // namespace cepheus::live
