#include "switch-emulator/live/datapath/held_payloads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace cepheus::live {
namespace {

constexpr std::uint32_t kHosts = 4;

class HeldPayloadsTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kPool = 0;

  void SetUp() override { ASSERT_TRUE(pools_.pool_for(getuid())); }
  // A payload of `sender` in the shared slots.
  wire::BufferRef payload_of(fabric::SenderNo sender) {
    wire::Frame frame;
    frame.set_inline_payload(std::array<std::uint8_t, 4>{});
    if (!pools_.copy_in(kPool, frame)) return wire::kNoBuffer;
    pools_.note_sender(frame.ref, sender);
    return frame.ref;
  }
  // Payloads of `sender` arrive until one is not held.
  std::vector<wire::BufferRef> fill(fabric::SenderNo sender) {
    std::vector<wire::BufferRef> held;
    for (;;) {
      const wire::BufferRef payload = payload_of(sender);
      if (payload == wire::kNoBuffer) return held;
      const bool is_held = held_.hold(payload);
      pools_.drop(payload);
      if (!is_held) return held;
      held.push_back(payload);
    }
  }
  std::uint32_t in_use() const { return pools_.in_use(kPool, pools_.geometry().switch_area()); }

  fabric::PayloadPools pools_{fabric::PoolGeometry::for_hosts(kHosts, 256)};
  HeldPayloads held_{pools_};
  const std::uint32_t slots_ = pools_.geometry().slots_per_area;
};

TEST_F(HeldPayloadsTest, LeaveHalfOfTheCommonSlotsWhicheverHostsCooperate) {
  EXPECT_NEAR(fill(0).size(), slots_ / 3, 1) << "two thirds of the half";
  const std::uint32_t left = slots_ / 2 - in_use();
  EXPECT_NEAR(fill(1).size(), left * 2 / 3, 1) << "two thirds of the rest";
  for (fabric::SenderNo host = 2; host < kHosts; ++host) fill(host);
  EXPECT_LE(in_use(), slots_ / 2);
}

TEST_F(HeldPayloadsTest, CountNothingThatWasReleased) {
  const auto first = fill(0);
  for (const wire::BufferRef payload : first) held_.release(payload);
  EXPECT_EQ(in_use(), 0u);
  EXPECT_EQ(fill(0).size(), first.size());
}

TEST_F(HeldPayloadsTest, AreMadeForTheSwitchItselfWithinItsShare) {
  std::vector<wire::BufferRef> made;
  for (;;) {
    const auto one = held_.make(200);
    if (one.buffer == wire::kNoBuffer) break;
    ASSERT_EQ(one.bytes.size(), 200u);
    one.bytes[199] = 7;
    made.push_back(one.buffer);
  }
  EXPECT_NEAR(made.size(), slots_ / 3, 1) << "two thirds of the half";
  EXPECT_EQ(in_use(), 0u) << "in memory of no user";
  for (const wire::BufferRef one : made) held_.release(one);
  EXPECT_NE(held_.make(200).buffer, wire::kNoBuffer);
  EXPECT_EQ(held_.make(1 << 16).buffer, wire::kNoBuffer) << "longer than a slot";
}

TEST_F(HeldPayloadsTest, IncludeAllSlotsOfAHostsOwnArea) {
  fill(0);
  wire::Frame frame;
  frame.payload_len = 4;
  ASSERT_TRUE(pools_.accept(kPool, 0, 0, frame));
  EXPECT_TRUE(held_.hold(frame.ref));
  pools_.drop(frame.ref);
  EXPECT_EQ(pools_.in_use(kPool, 0), 1u);
  held_.release(frame.ref);
  EXPECT_EQ(pools_.in_use(kPool, 0), 0u);
}

}  // namespace
}  // namespace cepheus::live
