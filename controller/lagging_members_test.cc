#include "controller/lagging_members.h"

#include <gtest/gtest.h>

namespace cepheus::mrp {
namespace {

using namespace std::chrono_literals;

constexpr wire::Ipv4 kHost{10, 0, 0, 2};
constexpr wire::Duration kPause = 2500ms;

using Role = LaggingMembers::Role;

class Named : public testing::Test {
 protected:
  LaggingMembers::Verdict after(wire::Duration d, std::uint32_t received,
                                Role role = Role::kReceiver) {
    return lagging_members_.name(now_ += d, kHost, role, received);
  }
  LaggingMembers lagging_members_{kPause};
  wire::Instant now_{1h};
};

TEST_F(Named, FirstIsNeitherActiveNorSilent) {
  const auto verdict = after(0s, 7);
  EXPECT_FALSE(verdict.is_active);
  EXPECT_EQ(verdict.silence, 0s);
}

TEST_F(Named, AgainAndAgainIsSilentForAsLong) {
  after(0s, 7);
  after(1s, 7);
  EXPECT_EQ(after(1s, 7).silence, 2s);
}

TEST_F(Named, AfterAPacketIsReceived) {
  after(0s, wire::Psn::kMask);
  after(1s, wire::Psn::kMask);
  const auto verdict = after(1s, 0);  // the count goes round
  EXPECT_TRUE(verdict.is_active);
  EXPECT_EQ(verdict.silence, 0s);
  EXPECT_EQ(after(1s, wire::Psn::kMask).silence, 1s) << "a switch that has seen less";
}

TEST_F(Named, AfterAPauseIsNew) {
  after(0s, 7);
  EXPECT_EQ(after(kPause + 1ms, 7).silence, 0s);
}

TEST_F(Named, AfterAPauseIsComparedWithWhatCameSince) {
  after(0s, 7);
  const std::uint32_t far = 7 + (1u << 23);  // seems to lie before the first count
  after(kPause + 1ms, far);
  EXPECT_TRUE(after(1s, far + 1).is_active);
  EXPECT_EQ(after(1s, far + 1).silence, 1s);
}

// A switch counts the packets of a source, and the answers of a receiver.
TEST_F(Named, AsReceiverIsNotComparedWithWhatItSentAsSource) {
  after(0s, 1'000'000, Role::kSource);
  after(1s, 5);
  EXPECT_TRUE(after(1s, 6).is_active);
  EXPECT_EQ(after(1s, 1'000'000, Role::kSource).silence, 0s) << "not named for longer than a pause";
  lagging_members_.forget(kHost);
  EXPECT_FALSE(lagging_members_.any(now_));
}

TEST_F(Named, IsForgotten) {
  after(0s, 7);
  EXPECT_TRUE(lagging_members_.any(now_ + kPause));
  EXPECT_FALSE(lagging_members_.any(now_ + kPause + 1ms));
  lagging_members_.forget(kHost);
  EXPECT_FALSE(lagging_members_.any(now_));
}

TEST_F(Named, SilentOnesAreFoundAsLongAsTheyAreNamed) {
  after(0s, 7);
  EXPECT_FALSE(lagging_members_.any_silent(now_, 1s));
  after(1s, 7);
  EXPECT_TRUE(lagging_members_.any_silent(now_, 1s));
  EXPECT_TRUE(lagging_members_.any_silent(now_ + 1s, 1s));
  EXPECT_FALSE(lagging_members_.any_silent(now_ + 1001ms, 1s));
}

}  // namespace
}  // namespace cepheus::mrp
