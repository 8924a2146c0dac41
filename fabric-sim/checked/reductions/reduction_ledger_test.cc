// The oracle of reductions reports each kind of error, and excuses failures only after a disaster.
#include "fabric-sim/checked/reductions/reduction_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>

namespace cepheus::sim {
namespace {

// Two members, and one operation of two units of 8 and 4 bytes.
class ReductionLedgerTest : public testing::Test {
 protected:
  ReductionLedgerTest() {
    for (std::size_t member = 0; member < 2; ++member) {
      ledger_.on_active(member, true);
      ledger_.on_begun(member);
    }
  }
  static ReductionPlan plan() {
    ReductionPlan plan;
    plan.group.id = wire::McstId(198, 18, 0, 1);
    plan.group.members = {{0, 1}, {1, 1}};
    plan.reduction.unit = 8;
    plan.operations = {{mcast::ReductionUnits::kOr, 12}};
    return plan;
  }
  void contribute(std::size_t member, int units) {
    for (int i = 0; i < units; ++i) ledger_.on_contributed(member);
  }
  std::vector<std::uint8_t> result(std::uint64_t from, std::size_t bytes) const {
    std::vector<std::uint8_t> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
      all[i] = ledger_.contribution(0, 0, from + i) | ledger_.contribution(1, 0, from + i);
    }
    return all;
  }
  Invariant found() const { return findings_.first()->invariant; }

  Simulator simulator_{1000};
  Findings findings_{simulator_};
  ReductionLedger ledger_{plan(), findings_};
};

TEST_F(ReductionLedgerTest, AcceptsAllResultsInOrder) {
  contribute(0, 2);
  contribute(1, 2);
  for (std::size_t member = 0; member < 2; ++member) {
    EXPECT_FALSE(ledger_.is_done());
    ledger_.on_part(member, 0, 0, result(0, 8));
    ledger_.on_part(member, 0, 8, result(8, 4));
    ledger_.on_ended(member, 0);
  }
  EXPECT_TRUE(ledger_.is_done());
  EXPECT_FALSE(findings_.first());
}

TEST_F(ReductionLedgerTest, FindsAResultBeforeAMemberHasContributed) {
  contribute(0, 2);
  contribute(1, 1);
  ledger_.on_part(0, 0, 0, result(0, 8));
  ASSERT_FALSE(findings_.first());
  ledger_.on_part(0, 0, 8, result(8, 4));
  EXPECT_EQ(found(), Invariant::kCompletion);
}

TEST_F(ReductionLedgerTest, FindsAWrongByte) {
  contribute(0, 2);
  contribute(1, 2);
  auto bytes = result(0, 8);
  bytes[5] ^= 0x40;
  ledger_.on_part(0, 0, 0, bytes);
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(ReductionLedgerTest, FindsAPartThatComesTwice) {
  contribute(0, 2);
  contribute(1, 2);
  ledger_.on_part(0, 0, 0, result(0, 8));
  ledger_.on_part(0, 0, 0, result(0, 8));
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(ReductionLedgerTest, FindsALostTail) {
  contribute(0, 2);
  contribute(1, 2);
  ledger_.on_part(0, 0, 0, result(0, 8));
  ledger_.on_ended(0, 0);
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(ReductionLedgerTest, FindsAWrongResultAfterADisaster) {
  ledger_.on_disaster();
  ledger_.on_wrong(1, "another unit's result");
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(ReductionLedgerTest, ExcusesAFailureAfterADeathAlone) {
  ledger_.on_death(0);
  ledger_.on_failed(1, "its group has ended");
  EXPECT_FALSE(findings_.first());
  EXPECT_TRUE(ledger_.is_done());
}

TEST_F(ReductionLedgerTest, FindsAFailureWithoutADisaster) {
  ledger_.on_failed(1, "retries exceeded");
  EXPECT_EQ(found(), Invariant::kLiveness);
}

// Its leader lives, and would have answered.
TEST_F(ReductionLedgerTest, FindsAMemberThatGivesUpAfterTheDeathOfAnother) {
  ledger_.on_death(1);
  ledger_.on_gave_up(0, "nobody answers");
  EXPECT_EQ(found(), Invariant::kLiveness);
}

TEST_F(ReductionLedgerTest, ExcusesAddedBitsOfAHostileMemberAlone) {
  ledger_.on_hostile({1, "10.0.0.2", true});
  contribute(0, 2);
  auto bytes = result(0, 8);
  bytes[1] = 0xFF;  // of the hostile member
  ledger_.on_part(0, 0, 0, bytes);
  ASSERT_FALSE(findings_.first());
  bytes = result(8, 4);
  bytes[0] = 0;  // of member 0
  ledger_.on_part(0, 0, 8, bytes);
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(ReductionLedgerTest, FindsOtherBytesBesideAHostileMemberThatAddsNone) {
  ledger_.on_hostile({1, "10.0.0.2", false});
  contribute(0, 2);
  auto bytes = result(0, 8);
  bytes[1] = 0xFF;
  ledger_.on_part(0, 0, 0, bytes);
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(ReductionLedgerTest, FindsAnEndThatDoesNotNameTheHostileMember) {
  ledger_.on_hostile({1, "10.0.0.2", false});
  ledger_.on_failed(1, "retries exceeded");
  EXPECT_FALSE(findings_.first()) << "of its own fault";
  ledger_.on_failed(0, "10.0.0.2 has failed");
  EXPECT_FALSE(findings_.first());
  ledger_.on_failed(0, "10.0.0.1 has failed");
  EXPECT_EQ(found(), Invariant::kLiveness);
}

// Three members, and an operation on two values.
class LedgerOfValues : public ReductionLedgerTest {
 protected:
  using Values = std::array<std::int32_t, 2>;
  using ValueBytes = std::array<std::uint8_t, sizeof(Values)>;

  explicit LedgerOfValues(arithmetic::Operation operation = arithmetic::Operation::kSum)
      : values_(plan_of(operation), findings_) {
    for (std::size_t member = 0; member < 3; ++member) values_.on_contributed(member);
  }
  static ReductionPlan plan_of(arithmetic::Operation operation) {
    ReductionPlan one = plan();
    one.group.members.push_back({2, 1});
    one.operations = {{{operation, arithmetic::Type::kInt32}, sizeof(Values)}};
    return one;
  }
  Values contribution(std::size_t member) const {
    ValueBytes bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = values_.contribution(member, 0, i);
    return std::bit_cast<Values>(bytes);
  }
  Values sums() const {
    std::array<std::uint32_t, 2> all{};
    for (std::size_t member = 0; member < 3; ++member) {
      for (std::size_t i = 0; i < 2; ++i) {
        all[i] += static_cast<std::uint32_t>(contribution(member)[i]);
      }
    }
    return std::bit_cast<Values>(all);
  }
  void take(std::size_t member, Values values) {
    values_.on_part(member, 0, 0, std::bit_cast<ValueBytes>(values));
  }

  ReductionLedger values_;
};

TEST_F(LedgerOfValues, AcceptsTheirSumsAlone) {
  take(0, sums());
  ASSERT_FALSE(findings_.first());
  take(1, {sums()[0], sums()[1] ^ 1});
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(LedgerOfValues, FindsAPartThatDividesAValue) {
  const auto bytes = std::bit_cast<ValueBytes>(sums());
  values_.on_part(0, 0, 0, std::span(bytes).first(6));
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(LedgerOfValues, AcceptsTheSameSumsOfAHostileMemberAlone) {
  values_.on_hostile({1, "10.0.0.2", true});
  take(0, {7, 8});
  ASSERT_FALSE(findings_.first()) << "it may contribute any value";
  take(2, {7, 9});
  EXPECT_EQ(found(), Invariant::kDelivery);
}

class LedgerOfFloatingSums : public ReductionLedgerTest {
 protected:
  static constexpr std::size_t kMembers = 3, kValues = 20;
  using Values = std::array<double, kValues>;
  using ValueBytes = std::array<std::uint8_t, sizeof(Values)>;

  LedgerOfFloatingSums() : sums_(plan_of_sums(), findings_) {
    for (std::size_t member = 0; member < kMembers; ++member) {
      sums_.on_active(member, false);
      sums_.on_contributed(member);
    }
    // Over two switches, of members 0 and 2, and of member 1.
    sums_.set_pairs({{{0, 2}, {0, 1}}, 0, 2});
  }
  static ReductionPlan plan_of_sums() {
    ReductionPlan one = plan();
    one.group.members.push_back({2, 1});
    one.operations = {{{arithmetic::Operation::kSum, arithmetic::Type::kDouble}, sizeof(Values)}};
    return one;
  }
  Values of(std::size_t member) const {
    ValueBytes bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = sums_.contribution(member, 0, i);
    return std::bit_cast<Values>(bytes);
  }
  Values sum(const std::array<std::size_t, kMembers>& order) const {
    Values all;
    for (std::size_t i = 0; i < kValues; ++i) {
      all[i] = (of(order[0])[i] + of(order[1])[i]) + of(order[2])[i];
      if (all[i] != all[i]) all[i] = -std::numeric_limits<double>::quiet_NaN();
    }
    return all;
  }
  void take(std::size_t member, const Values& values) {
    sums_.on_part(member, 0, 0, std::bit_cast<ValueBytes>(values));
  }

  ReductionLedger sums_;
};

TEST_F(LedgerOfFloatingSums, AcceptsThoseInThePairsOfTheTreeAlone) {
  take(0, sum({0, 2, 1}));
  ASSERT_FALSE(findings_.first());
  take(1, sum({0, 1, 2}));
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(LedgerOfFloatingSums, OfAHostileMemberAreTheSameAtAllMembers) {
  sums_.on_hostile({1, "10.0.0.2", true});
  take(0, sum({0, 1, 2}));
  ASSERT_FALSE(findings_.first());
  take(2, sum({0, 2, 1}));
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(ReductionLedgerTest, FindsMembersThatDifferAboutFlatness) {
  ledger_.on_active(1, false);
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST(MemberPairs, ByAddressAreThoseOfPowersOfTwo) {
  const wire::Ipv4 a(1), b(2), c(3), d(4), e(5);
  const std::array members{e, a, b, d, c};
  const MemberPairs pairs = MemberPairs::by_address(members);
  const decltype(pairs.pairs) expected{{1, 2}, {4, 3}, {1, 4}, {1, 0}};
  EXPECT_EQ(pairs.pairs, expected);
  EXPECT_EQ(pairs.first, 1u);
}

class LedgerOfMaxima : public LedgerOfValues {
 protected:
  LedgerOfMaxima() : LedgerOfValues(arithmetic::Operation::kMax) {}
};

TEST_F(LedgerOfMaxima, MayBeGreaterByAHostileMember) {
  values_.on_hostile({1, "10.0.0.2", true});
  constexpr std::int32_t kGreatest = std::numeric_limits<std::int32_t>::max();
  take(0, {kGreatest, std::max(contribution(0)[1], contribution(2)[1])});
  EXPECT_FALSE(findings_.first());
}

TEST_F(LedgerOfMaxima, AreAtLeastThoseOfHonestMembers) {
  values_.on_hostile({1, "10.0.0.2", true});
  constexpr std::int32_t kGreatest = std::numeric_limits<std::int32_t>::max();
  take(0, {kGreatest, std::max(contribution(0)[1], contribution(2)[1]) - 1});
  EXPECT_EQ(found(), Invariant::kDelivery);
}

TEST_F(ReductionLedgerTest, FindsAnOperationThatNeverEnds) {
  ledger_.on_death(1);
  EXPECT_FALSE(ledger_.is_done());
  ledger_.check_done();
  EXPECT_EQ(found(), Invariant::kLiveness);
}

}  // namespace
}  // namespace cepheus::sim
