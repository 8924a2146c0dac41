#include "libmcast/engine/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cepheus::mcast {
namespace {

using testing::HasSubstr;
using Kind = ReductionUnits::Kind;
using Place = ReductionUnits::Place;

// Units of 8 bytes, windows of 4.
class ReductionUnitsTest : public testing::Test {
 protected:
  void post_receives() {
    while (units_.next_receive()) units_.on_receive_posted();
  }
  // Sends all that may be sent; returns the number of packets.
  int send() {
    int sent = 0;
    for (; const auto part = units_.next_contribution(); ++sent) {
      last_ = *part;
      units_.on_contributed();
    }
    return sent;
  }
  wire::Result<ReductionUnits::Part> result(std::uint64_t unit, std::uint32_t bytes,
                                            Kind kind = ReductionUnits::kOr) {
    const wire::ReductionImm imm{static_cast<std::uint8_t>(kind.operation),
                                 static_cast<std::uint8_t>(kind.type), 7,
                                 static_cast<std::uint16_t>(unit)};
    return units_.on_result(imm.value(), bytes);
  }

  ReductionUnits units_{0x107, 8, 4};
  ReductionUnits::Part last_;
};

TEST_F(ReductionUnitsTest, PostReceivesBeforeTheyContribute) {
  units_.start(1, ReductionUnits::kOr, 8);
  EXPECT_TRUE(units_.needs_receive());
  EXPECT_FALSE(units_.next_contribution());
  EXPECT_EQ(units_.next_receive()->slot, 0u);
  units_.on_receive_posted();
  EXPECT_EQ(send(), 1);
}

TEST_F(ReductionUnitsTest, DivideNoValue) {
  post_receives();
  units_.start(1, {arithmetic::Operation::kSum, arithmetic::Type::kInt32}, 20);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> parts;
  while (const auto part = units_.next_contribution()) {
    parts.emplace_back(part->offset, part->bytes);
    EXPECT_EQ(wire::ReductionImm::from(part->imm).what(), 0x95);
    units_.on_contributed();
  }
  EXPECT_EQ(parts, (std::vector<std::pair<std::uint64_t, std::uint32_t>>{{0, 8}, {8, 8}, {16, 4}}));
}

TEST_F(ReductionUnitsTest, DivideAnOperation) {
  post_receives();
  units_.start(1, ReductionUnits::kOr, 20);
  const auto first = units_.next_contribution();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->offset, 0u);
  EXPECT_EQ(first->bytes, 8u);
  EXPECT_FALSE(first->is_last);
  EXPECT_EQ(wire::ReductionImm::from(first->imm), (wire::ReductionImm{1, 0, 7, 0}));
  EXPECT_EQ(send(), 3);
  EXPECT_EQ(last_.offset, 16u);
  EXPECT_EQ(last_.bytes, 4u);
  EXPECT_EQ(last_.slot, 2u);
  EXPECT_TRUE(last_.is_last);
}

TEST_F(ReductionUnitsTest, OfABarrierAreOneWithoutBytes) {
  post_receives();
  units_.start(9, Kind{}, 0);
  EXPECT_EQ(send(), 1);
  EXPECT_EQ(last_.bytes, 0u);
  EXPECT_EQ(wire::ReductionImm::from(last_.imm).operation, 0);
  const auto done = result(0, 0, Kind{});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->operation, 9u);
  EXPECT_TRUE(done->is_last);
  EXPECT_EQ(units_.operations(), 0u);
}

TEST_F(ReductionUnitsTest, KeepTheirCredit) {
  post_receives();
  units_.start(1, ReductionUnits::kOr, 100);
  EXPECT_EQ(send(), 4);
  units_.on_sends_done(3);
  EXPECT_EQ(send(), 0) << "custody gives no credit";
  ASSERT_TRUE(result(0, 8));
  EXPECT_EQ(send(), 0) << "no receive for it";
  EXPECT_EQ(units_.next_receive()->slot, 0u);
  post_receives();
  EXPECT_FALSE(units_.next_receive()) << "unit 1 has no result yet";
  EXPECT_EQ(send(), 1);
  EXPECT_EQ(last_.slot, 0u);
}

TEST_F(ReductionUnitsTest, WaitForTheirSlotsSend) {
  post_receives();
  units_.start(1, ReductionUnits::kOr, 100);
  send();
  ASSERT_TRUE(result(0, 8));
  post_receives();
  EXPECT_EQ(send(), 0) << "the acknowledgement of unit 0 was lost";
  units_.on_sends_done(0);
  EXPECT_EQ(send(), 1);
}

TEST_F(ReductionUnitsTest, SendAtOnceWhatTheirSlotsHold) {
  EXPECT_FALSE(units_.may_send_at_once(8)) << "no receive is posted";
  post_receives();
  EXPECT_TRUE(units_.may_send_at_once(32));
  EXPECT_FALSE(units_.may_send_at_once(33)) << "five units";
  units_.start(1, ReductionUnits::kOr, 32);
  send();
  EXPECT_FALSE(units_.may_send_at_once(0));
  ASSERT_TRUE(result(0, 8));
  post_receives();
  EXPECT_FALSE(units_.may_send_at_once(8)) << "its slot is being sent";
  units_.on_sends_done(0);
  EXPECT_TRUE(units_.may_send_at_once(8));
  EXPECT_FALSE(units_.may_send_at_once(9));
}

TEST_F(ReductionUnitsTest, CompleteOperationsInTheirOrder) {
  post_receives();
  units_.start(1, ReductionUnits::kOr, 9);
  units_.start(2, Kind{}, 0);
  EXPECT_EQ(send(), 3);
  EXPECT_FALSE(result(0, 8)->is_last);
  const auto first = result(1, 1);
  EXPECT_EQ(first->operation, 1u);
  EXPECT_TRUE(first->is_last);
  EXPECT_EQ(units_.operations(), 1u);
  EXPECT_EQ(result(2, 0, Kind{})->operation, 2u);
  units_.start(3, ReductionUnits::kOr, 1);
  units_.on_sends_done(2);
  post_receives();
  EXPECT_EQ(send(), 1);
  EXPECT_EQ(result(3, 1)->operation, 3u);
}

// Of the receives posted now, the units with results straight into the operation's memory.
std::vector<std::uint64_t> direct(ReductionUnits& units) {
  std::vector<std::uint64_t> offsets;
  while (const auto receive = units.next_receive()) {
    if (receive->is_direct) offsets.push_back(receive->offset);
    units.on_receive_posted();
  }
  return offsets;
}

// Of 13 units the first four have receives that were posted before, and the last four are kept.
TEST_F(ReductionUnitsTest, TakeResultsStraightIntoMemoryAndKeepTheLast) {
  post_receives();
  units_.start(1, ReductionUnits::kOr, 100, Place::kApart);
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t unit = 0; unit < 13; ++unit) {
    if (send() > 0) units_.on_sends_done(last_.send);
    const auto part = result(unit, unit < 12 ? 8 : 4);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->is_direct, unit >= 4 && unit < 9) << unit;
    for (const std::uint64_t offset : direct(units_)) offsets.push_back(offset);
  }
  EXPECT_THAT(offsets, testing::ElementsAre(32, 40, 48, 56, 64));
}

TEST_F(ReductionUnitsTest, TakeResultsInPlaceBySlots) {
  units_.start(1, ReductionUnits::kOr, 100, Place::kInPlace);
  EXPECT_THAT(direct(units_), testing::IsEmpty());
}

TEST_F(ReductionUnitsTest, TakeTheFirstResultsStraightIfTheirReceivesComeLater) {
  post_receives();
  units_.start(1, Kind{}, 0);
  units_.start(2, ReductionUnits::kOr, 100, Place::kApart);
  EXPECT_EQ(send(), 4);
  ASSERT_TRUE(result(0, 0, Kind{}));
  EXPECT_THAT(direct(units_), testing::ElementsAre(24)) << "its fourth unit";
}

TEST_F(ReductionUnitsTest, OfAWindowAndNoMoreAreAllKept) {
  units_.start(1, ReductionUnits::kOr, 32, Place::kApart);
  EXPECT_THAT(direct(units_), testing::IsEmpty());
}

// Of 16 units a quarter is four.
TEST(ReductionLists, OfReceivesHaveAQuarterOfTheWindow) {
  ReductionUnits units(7, 8, 16);
  EXPECT_TRUE(units.are_receives_due()) << "nothing is awaited";
  direct(units);
  EXPECT_FALSE(units.are_receives_due());
  units.start(1, ReductionUnits::kOr, 30 * 8, ReductionUnits::Place::kInPlace);
  const auto go_on = [&] {
    for (; units.next_contribution(); units.on_contributed()) {
    }
  };
  auto result = [&, unit = std::uint16_t{0}]() mutable {
    ASSERT_TRUE(units.on_result(wire::ReductionImm{1, 0, 7, unit++}.value(), 8));
  };
  go_on();
  for (int i = 0; i < 3; ++i) {
    result();
    EXPECT_FALSE(units.are_receives_due()) << i;
  }
  result();
  EXPECT_TRUE(units.are_receives_due());
  direct(units);
  units.on_sends_done(15);
  go_on();
  EXPECT_EQ(units.contributed(), 20u);
  for (int i = 4; i < 20; ++i) result();
  direct(units);
  go_on();
  for (int i = 20; i < 29; ++i) result();
  direct(units);
  result();
  EXPECT_TRUE(units.are_receives_due()) << "the operation has ended";
}

TEST(ReductionLists, OfSendsAreDoneAtOnce) {
  ReductionUnits units(7, 8, 4);
  direct(units);
  units.start(1, ReductionUnits::kOr, 100, ReductionUnits::Place::kInPlace);
  std::uint32_t last = 0;
  const auto send = [&] {
    int sent = 0;
    for (; const auto part = units.next_contribution(); ++sent) {
      last = part->send;
      units.on_contributed();
    }
    return sent;
  };
  EXPECT_EQ(send(), 4);
  for (std::uint16_t unit = 0; unit < 4; ++unit) {
    ASSERT_TRUE(units.on_result(wire::ReductionImm{1, 0, 7, unit}.value(), 8));
  }
  direct(units);
  EXPECT_EQ(send(), 1) << "a window, and a list that is not known to be done";
  EXPECT_EQ(units.sends_until(last), 5u);
  units.on_sends_done(3);
  EXPECT_EQ(units.sends_done(), 4u);
  EXPECT_EQ(units.sends_until(last), 1u);
  EXPECT_EQ(send(), 3);
  units.on_sends_done(last);
  EXPECT_EQ(units.sends_done(), 8u);
}

TEST_F(ReductionUnitsTest, RefuseResultsThatTheyDoNotWaitFor) {
  post_receives();
  EXPECT_FALSE(result(0, 8)) << "without a contribution";
  units_.start(1, ReductionUnits::kOr, 8);
  send();
  EXPECT_FALSE(result(0, 7));
  EXPECT_FALSE(result(1, 8)) << "another unit";
  EXPECT_FALSE(result(0, 8, Kind{}));
  const auto largest = result(0, 8, {arithmetic::Operation::kMax, arithmetic::Type::kInt64});
  ASSERT_FALSE(largest);
  EXPECT_THAT(largest.error().text,
              HasSubstr("unit 0 has a result of 8 bytes to a maximum of int64, not of 8 bytes: "));
  EXPECT_TRUE(result(0, 8));
}

}  // namespace
}  // namespace cepheus::mcast
