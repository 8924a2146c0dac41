// Sums of floating-point numbers in the slots of units, and in a switch.
#include "switch-emulator/engine/reduction/ordered_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>

#include "switch-emulator/engine/reduction/test_members.h"
#include "switch-emulator/engine/reduction/unit_slots.h"
#include "wire/reduction.h"

namespace cepheus::fabric {
namespace {

constexpr wire::MrpReduction kOrdered{wire::MrpReduction::kOrdered, 16, 4};
constexpr UnitShape kSum{0x99, 8}, kSumOfIntegers{0x97, 8};  // one double, one int64

Bytes bytes_of(double value) {
  const auto bytes = std::bit_cast<std::array<std::uint8_t, 8>>(value);
  return {bytes.begin(), bytes.end()};
}

// Rounded sums of these depend on their pairs.
double operand(std::size_t place) {
  const auto number = static_cast<double>(place);
  return (place % 2 == 0 ? 1e15 : -1e15) / (3 * number + 1) + 0.1 * number;
}

double in_pairs(std::size_t first, std::size_t count) {
  if (count == 1) return operand(first);
  const std::size_t half = std::bit_ceil(count) / 2;
  return in_pairs(first, half) + in_pairs(first + half, count - half);
}

RC_GTEST_PROP(OrderedSums, AreInPairsByPlaceInAnyOrderOfPaths, ()) {
  const auto paths = *rc::gen::inRange<std::size_t>(1, 40);
  const auto draw_order = [&] {
    std::vector<PathNo> order(paths);
    std::iota(order.begin(), order.end(), PathNo{0});
    for (std::size_t i = paths - 1; i > 0; --i)
      std::swap(order[i], order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
    return order;
  };
  UnitSlots slots(kOrdered);
  const std::vector<PathNo> places = draw_order();
  slots.set_order({places, paths});
  for (const Unit unit : {0, 1, 4, 5}) {  // two of them in a slot after another
    for (const PathNo path : draw_order())
      RC_ASSERT(slots.add(unit, path, kSum, bytes_of(operand(places[path])), {}));
    const auto sum = slots.partial(unit).data;
    const Bytes got(sum.begin(), sum.end());
    RC_ASSERT(got == bytes_of(in_pairs(0, paths)));
    slots.complete(unit);
  }
}

TEST(OrderedSums, LeaveOtherOperationsAsTheyAre) {
  UnitSlots slots(kOrdered);
  slots.set_order({{0, 1, 2}, 3});
  for (const PathNo path : {2, 0, 1}) slots.add(0, path, kSumOfIntegers, Bytes(8, 1), {});
  EXPECT_THAT(slots.partial(0).data, testing::Each(3));
  EXPECT_TRUE(slots.serves(kSum));
  EXPECT_FALSE(slots.serves({0x99, 12})) << "one and a half";
  EXPECT_FALSE(UnitSlots({wire::MrpReduction::kValues, 16, 4}).serves(kSum));
}

TEST(OrderedSums, OfNoBytesAndOfDifferentShapesTakeNoPlace) {
  UnitSlots slots(kOrdered);
  slots.set_order({{0, 1}, 2});
  EXPECT_TRUE(slots.add(0, 1, {0x99, 0}, {}, {}));
  EXPECT_TRUE(slots.add(0, 0, {0x99, 0}, {}, {}));
  EXPECT_EQ(slots.contribution(0).paths, 2);
  EXPECT_TRUE(slots.add(1, 1, kSum, bytes_of(1), {}));
  EXPECT_FALSE(slots.add(1, 0, kSumOfIntegers, Bytes(8, 1), {}));
  EXPECT_EQ(slots.contribution(1).paths, 1);
}

TEST(OrderedSums, NeedAPacketForEachPairOfPathsAndTheResult) {
  const wire::MrpReduction group{wire::MrpReduction::kOrdered, 4096, 64};
  const wire::MrpReduction values{wire::MrpReduction::kValues, 4096, 64};
  for (const std::size_t paths : {2, 3, 4, 64, 65}) {
    const std::size_t packets = (paths + 1) / 2 + 1;
    const std::size_t bytes = UnitSlots::bytes_for(group, paths);
    EXPECT_GE(bytes, packets * 64 * 4096) << paths;
    EXPECT_LE(bytes, packets * 64 * 4096 + 64 * 128) << paths;
    EXPECT_EQ(UnitSlots::bytes_for(values, paths), UnitSlots::bytes_for(values, 2));
  }
}

// Host 0 is the leader's, and its path has number 0. Here it has the last address.
class FloatingSums : public testing::Test {
 protected:
  explicit FloatingSums(
      const std::function<void(SwitchConfig&)>& change = [](auto&) {}, std::size_t members = 5)
      : net_(make_star(members, false, change)) {
    net_->reduction = wire::MrpReduction{wire::MrpReduction::kOrdered, 4096, 8};
    net_->set_up_group(members - 1);
  }
  // The hosts contribute in this order; the result that host 0 gets.
  Bytes sum(const std::vector<std::size_t>& order) {
    for (const std::size_t host : order) send(host, bytes_of(operand(host)));
    ++unit_;
    Bytes result;
    for (const auto& bytes : net_->frames(0)) {
      const auto frame = Frame::from_bytes(bytes);
      const auto headers = wire::RoceHeaders::parse(*frame);
      if (!headers || headers->bth.opcode != wire::Opcode::kRcSendOnlyImm) continue;
      result.assign(frame->payload().begin(), frame->payload().end());
    }
    net_->clear();
    return result;
  }
  void send(std::size_t host, const Bytes& data) {
    auto h = net_->headers_from(host, wire::Opcode::kRcSendOnlyImm, unit_);
    h.imm.value = wire::ReductionImm{9, 9, static_cast<std::uint8_t>(net_->epoch),
                                     static_cast<std::uint16_t>(unit_)}
                      .value();
    Frame frame;
    h.emit(frame, data.size());
    frame.set_external_payload(data, wire::kNoBuffer);
    wire::seal_icrc(frame);
    net_->inject(host, frame);
  }

  std::unique_ptr<TestNetwork> net_;
  int unit_ = 0;
};

TEST_F(FloatingSums, AreInPairsByAddressWhateverComesFirst) {
  EXPECT_EQ(sum({0, 1, 2, 3, 4}), bytes_of(in_pairs(0, 5)));
  EXPECT_EQ(sum({4, 2, 0, 3, 1}), bytes_of(in_pairs(0, 5)));
}

class FloatingSumsWithoutPairs : public FloatingSums {
 protected:
  FloatingSumsWithoutPairs()
      : FloatingSums([](SwitchConfig& config) { config.rules.reduction_in_pairs = false; }) {}
};

TEST_F(FloatingSumsWithoutPairs, DependOnWhatComesFirst) {
  const Bytes in_order = sum({0, 1, 2, 3, 4});
  EXPECT_NE(in_order, bytes_of(in_pairs(0, 5)));
  EXPECT_NE(sum({0, 2, 4, 1, 3}), in_order);
}

class FloatingSumsWithoutOrder : public FloatingSums {
 protected:
  FloatingSumsWithoutOrder()
      : FloatingSums([](SwitchConfig& config) { config.rules.reduction_order = false; }) {}
};

TEST_F(FloatingSumsWithoutOrder, DependOnTheLeader) {
  EXPECT_NE(sum({0, 1, 2, 3, 4}), bytes_of(in_pairs(0, 5)));
}

TEST_F(FloatingSums, HaveTheirMemoryWithTheGroup) {
  const TableBytes expected =
      Switch::table_bytes({.ports = 5, .paths = 5, .reduction = net_->reduction});
  EXPECT_EQ(TableBytes::sum(expected.table), net_->view().table_bytes);
  EXPECT_GE(net_->view().table_bytes, 4u * 8 * 4096);
}

// A host's groups have two thirds of the memory. The fifth path needs one more packet for each unit.
TEST(FloatingSumsOfMany, AreRefusedIfTheirPathsNeedMoreMemoryThanIsLeft) {
  const wire::MrpReduction group{wire::MrpReduction::kOrdered, 4096, 8};
  auto net = make_star(5, false, [&](SwitchConfig& config) {
    config.reduction_memory = UnitSlots::bytes_for(group, 4) * 5 / 4;
  });
  net->clear();
  net->reduction = group;
  net->register_group(0, 1, {}, wire::MrpHeader::kLossEnds);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 no memory for another reduction group 10.0.0.5"}));
  EXPECT_EQ(net->sw(0).group_count(), 0u);
}

}  // namespace
}  // namespace cepheus::fabric
