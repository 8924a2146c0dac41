#include "switch-emulator/engine/reduction/unit_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch-emulator/engine/reduction/responder.h"

namespace cepheus::fabric {
namespace {

using testing::ElementsAre;
using Bytes = std::vector<std::uint8_t>;

constexpr UnitShape kTwo{0x10, 2};

TEST(UnitSlots, AddsByOr) {
  UnitSlots slots({wire::MrpReduction::kValues, 8, 4});
  EXPECT_TRUE(slots.add(5, 0, kTwo, Bytes{1, 0x80}, wire::Instant(std::chrono::seconds(3))));
  EXPECT_TRUE(slots.add(5, 2, kTwo, Bytes{2, 0x80}, wire::Instant(std::chrono::seconds(4))));
  EXPECT_EQ(slots.contribution(5).paths, 2);
  EXPECT_EQ(slots.contribution(5).first, 0);
  EXPECT_EQ(slots.contribution(5).since, wire::Instant(std::chrono::seconds(3)));
  EXPECT_THAT(slots.partial(5).data, ElementsAre(3, 0x80));
}

TEST(UnitSlots, AddsByTheOperationOfTheUnit) {
  UnitSlots slots({wire::MrpReduction::kValues, 8, 4});
  constexpr UnitShape kProducts{0xA0, 2};  // of uint8
  slots.add(0, 0, kProducts, Bytes{3, 200}, {});
  slots.add(0, 1, kProducts, Bytes{5, 2}, {});
  EXPECT_THAT(slots.partial(0).data, ElementsAre(15, 144));
}

TEST(UnitSlots, RefusesAnotherShapeAndStaysAsItWas) {
  UnitSlots slots({wire::MrpReduction::kValues, 8, 4});
  slots.add(0, 0, kTwo, Bytes{1, 1}, {});
  EXPECT_FALSE(slots.add(0, 1, {0x10, 1}, Bytes{2}, {}));
  EXPECT_FALSE(slots.add(0, 1, {0x11, 2}, Bytes{2, 2}, {}));
  EXPECT_EQ(slots.contribution(0).paths, 1);
  EXPECT_THAT(slots.partial(0).data, ElementsAre(1, 1));
}

TEST(UnitSlots, KeepAResultWhileTheSlotsNextUnitIsAdded) {
  UnitSlots slots({wire::MrpReduction::kValues, 8, 2});
  slots.add(0, 0, kTwo, Bytes{1, 2}, {});
  slots.complete(0);
  slots.add(2, 0, {0, 0}, {}, {});
  EXPECT_THAT(slots.result(0).data, ElementsAre(1, 2));
  EXPECT_EQ(slots.result(0).shape, kTwo);
  slots.complete(2);
  EXPECT_TRUE(slots.result(2).data.empty());
  slots.store(1, kTwo, Bytes{7, 8});
  EXPECT_THAT(slots.result(1).data, ElementsAre(7, 8));
}

TEST(UnitSlots, CountTheirMemory) {
  const wire::MrpReduction group{wire::MrpReduction::kValues, 4096, 64};
  EXPECT_EQ(UnitSlots(group).bytes(5), UnitSlots::bytes_for(group, 5));
  EXPECT_GE(UnitSlots::bytes_for(group, 5), 2u * 4096 * 64);
  EXPECT_LE(UnitSlots::bytes_for(group, 5), 2u * 4096 * 64 + 64 * 64);
}

TEST(UnitSlots, NameTheFirstPathByItsNewNumber) {
  UnitSlots slots({wire::MrpReduction::kValues, 8, 2});
  slots.add(0, 3, kTwo, Bytes{1, 2}, {});
  slots.add(1, 1, kTwo, Bytes{1, 2}, {});
  slots.on_path_removed(1, 3);
  EXPECT_EQ(slots.contribution(0).first, 1);
  EXPECT_EQ(slots.contribution(1).first, kNoPath);
}

TEST(Responder, RequestsALostUnitOnce) {
  Responder in;
  EXPECT_TRUE(in.take_gap());
  EXPECT_FALSE(in.take_gap());
  in.take();
  EXPECT_TRUE(in.take_gap());
  in.take();
  in.on_refused();
  EXPECT_FALSE(in.take_gap()) << "its path waits";
  EXPECT_EQ(in.owed(), 2u);
  in.on_acknowledged();
  EXPECT_EQ(in.owed(), 0u);
}

TEST(Unit, IsFoundByItsPsnAcrossTheWrap) {
  const wire::Psn start(0xFFFFF0);
  for (const Unit unit : {Unit{0}, Unit{15}, Unit{16}, (Unit{1} << 24) + 3, (Unit{1} << 40) + 7}) {
    for (const Unit expected : {unit, unit + 200, unit < 200 ? Unit{0} : unit - 200}) {
      EXPECT_EQ(unit_at(start, expected, psn_of(start, unit)), static_cast<std::int64_t>(unit));
    }
  }
  EXPECT_EQ(unit_at(start, 0, start - 1), -1);
}

}  // namespace
}  // namespace cepheus::fabric
