// Operations and types of reductions: those that a switch computes, and those that it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch-emulator/engine/reduction/reduction_group.h"
#include "switch-emulator/engine/reduction/test_members.h"
#include "wire/reduction.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST_F(Reduction, ComputesOnValues) {
  const auto result_of = [&](std::uint8_t what, const std::array<Bytes, 3>& contributions) {
    const Unit unit = unit_++;
    for (std::size_t m : {0, 1, 2}) members_.send(m, unit, what, contributions[m]);
    Bytes result;
    for (const auto& bytes : net_->frames(1)) {
      const auto frame = Frame::from_bytes(bytes);
      const auto headers = wire::RoceHeaders::parse(*frame);
      if (headers->bth.opcode != wire::Opcode::kRcSendOnlyImm) continue;
      EXPECT_EQ(wire::ReductionImm::from(headers->imm.value).what(), what);
      result.assign(frame->payload().begin(), frame->payload().end());
    }
    for (std::size_t m : {0, 1, 2}) net_->inbox(m);
    return result;
  };
  EXPECT_EQ(result_of(0x92, {{{1, 0, 255, 255}, {2, 1, 1, 0}, {0, 0, 1, 0}}}), Bytes({3, 1, 1, 0}))
      << "sums of uint16 wrap";
  EXPECT_EQ(result_of(0x71, {{{1, 2, 3, 255}, {0, 2, 4, 1}, {5, 2, 3, 2}}}), Bytes({0, 2, 3, 255}))
      << "the least int8";
  EXPECT_EQ(result_of(0x64, {{{4, 0, 0, 0}, {0, 9, 0, 0}, {0, 0, 0, 1}}}), Bytes({1, 0, 0, 0}))
      << "logical xor of uint32";
  EXPECT_EQ(result_of(0x88, {{{0, 0, 0x80, 0x3F}, {0, 0, 0, 0x40}, {0, 0, 0x80, 0xBF}}}),
            Bytes({0, 0, 0, 0x40}))
      << "the greatest float: 1, 2, -1";
}

TEST_F(Reduction, RefusesWhatItCannotAddAndAcknowledgesWhatItHas) {
  members_.contribute(0);
  members_.send(0, 1, 0xB0, Bytes(4, 1));
  EXPECT_THAT(net_->inbox(0), Contains("fatal 1 c1")) << "no such operation";
  members_.send(1, 0, 0x1A, Bytes(4, 1));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "no such type";
  members_.send(1, 0, 0x18, Bytes(4, 1));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "no bits of floating-point numbers";
  members_.send(1, 0, 0x99, Bytes(8, 1));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "a sum of doubles depends on their pairs";
  members_.send(1, 0, 0x97, Bytes(12, 1));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "one and a half values";
  members_.send(1, 0, 0x01, {});
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "a barrier has no type";
  members_.send(1, 0, kBarrier, Bytes(4, 1));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "a barrier has no bytes";
  members_.send(1, 0, kOr, Bytes(4097, 1));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "longer than a unit";
  members_.send(1, 0, kOr, Bytes(4104, 1));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "longer than any unit";
  net_->write(2, 0, 1, 0, 64);
  net_->data(2, 0);
  EXPECT_EQ(net_->inbox(2), Texts({"fatal 0 c1", "fatal 0 c1"})) << "no immediate data";
}

TEST_F(Reduction, NamesTheContributionThatItDoesNotServe) {
  members_.send(1, 0, 0x99, Bytes(8, 1));
  EXPECT_EQ(net_->count(Counter::kDropReductionOperation), 1u);
  EXPECT_EQ(net_->count(Counter::kDropNotMulticastable), 0u);
  EXPECT_EQ(net_->inbox(0),
            Texts({"reject e1 an operation that the switch does not serve 10.0.0.2"}));
  EXPECT_EQ(net_->last_report(0, 0).flags, 0x99);
  EXPECT_EQ(net_->last_report(0, 0).token, 8u);
  members_.send(2, 0, 0x97, Bytes(4, 1));
  EXPECT_THAT(net_->inbox(0), Not(Contains(HasSubstr("reject")))) << "once a second";
  EXPECT_EQ(net_->count(Counter::kDropReductionOperation), 2u) << "half a value";
}

// Its connection fails with a text that any wrong packet causes. The REJECT has the reason.
TEST_F(Reduction, NamesTheLeadersContributionBeforeItsConnectionFails) {
  members_.send(0, 0, 0x99, Bytes(8, 1));
  EXPECT_EQ(net_->inbox(0), Texts({"reject e1 an operation that the switch does not serve 10.0.0.1",
                                   "fatal 0 c1"}));
  members_.send(0, 0, 0x99, Bytes(8, 1));
  EXPECT_EQ(net_->inbox(0), Texts({"fatal 0 c1"})) << "REJECT comes again after a second";
  net_->advance(1s);
  members_.send(1, 0, 0x99, Bytes(8, 1));
  EXPECT_EQ(net_->inbox(0),
            Texts({"reject e1 an operation that the switch does not serve 10.0.0.1"}));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"}));
}

// The REJECT may be lost, and the leader then does not know.
TEST_F(Reduction, ShowsThatAnOperationThatIsNotServedEndsTheGroup) {
  members_.contribute(0);
  members_.send(1, 0, 0x99, Bytes(8, 1));
  const GroupView view = net_->view();
  ASSERT_TRUE(view.reduction);
  EXPECT_EQ(view.reduction->failure, "an operation that the switch does not serve");
  EXPECT_FALSE(view.reduction->waits_since);
  for (const PathView& path : view.paths) EXPECT_FALSE(path.late) << path.name;
}

TEST_F(Reduction, ShowsTheContributionThatALateMemberLacks) {
  members_.send(1, 0, 0x95, Bytes(12, 1));
  const auto late = net_->path_view(2).late;
  ASSERT_TRUE(late);
  EXPECT_EQ(late->operation, 9);
  EXPECT_EQ(late->type, 5);
  EXPECT_EQ(late->bytes, 12u);
}

}  // namespace
}  // namespace cepheus::fabric
