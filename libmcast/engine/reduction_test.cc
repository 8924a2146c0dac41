#include "libmcast/engine/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cepheus::mcast {
namespace {

using testing::HasSubstr;
using Kind = ReductionUnits::Kind;

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
  EXPECT_EQ(units_.next_receive(), 0u);
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
  for (int i = 0; i < 4; ++i) units_.on_send_done();
  EXPECT_EQ(send(), 0) << "custody gives no credit";
  ASSERT_TRUE(result(0, 8));
  EXPECT_EQ(send(), 0) << "no receive for it";
  EXPECT_EQ(units_.next_receive(), 0u);
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
  units_.on_send_done();
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
  units_.on_send_done();
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
  for (int i = 0; i < 3; ++i) units_.on_send_done();
  post_receives();
  EXPECT_EQ(send(), 1);
  EXPECT_EQ(result(3, 1)->operation, 3u);
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
