#include "switch-emulator/ports/payload_pool.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "wire/mrp.h"

namespace cepheus::fabric {
namespace {

using wire::Frame;

constexpr std::uint32_t kHosts = 2;
const PoolGeometry kGeometry = PoolGeometry::for_hosts(kHosts, 4096);

class Owner final : public SlotOwner {
 public:
  void take_back(std::uint32_t slot) override { returned.insert(slot); }
  std::multiset<std::uint32_t> returned;
};

std::uint64_t offset_in(std::uint32_t area, std::uint32_t slot) {
  return area * kGeometry.area_bytes() + std::uint64_t{slot} * kGeometry.slot_bytes;
}

Frame frame_of(std::uint16_t payload_bytes) {
  Frame frame{};
  frame.header_len = 54;
  frame.payload_len = payload_bytes;
  return frame;
}

TEST(PoolGeometry, HasSpaceForRegistrationAtEveryPathMtu) {
  EXPECT_GE(PoolGeometry::for_hosts(2, 256).slot_bytes, wire::MrpMessage::kMaxDatagram);
}

TEST(PayloadPools, GiveANewOwnerEverySlotOnce) {
  PayloadPools pools(kGeometry);
  Owner owner;
  pools.set_owner(*pools.pool_for(1000), 0, &owner);
  EXPECT_EQ(owner.returned.size(), kGeometry.slots_per_area);
  EXPECT_EQ(std::set(owner.returned.begin(), owner.returned.end()).size(), owner.returned.size());
}

TEST(PayloadPools, ReturnASlotWhenItsLastReferenceGoes) {
  PayloadPools pools(kGeometry);
  Owner owner;
  const std::uint32_t pool = *pools.pool_for(1000);
  pools.set_owner(pool, 1, &owner);
  owner.returned.clear();
  Frame frame = frame_of(4096);
  ASSERT_TRUE(pools.accept(pool, 1, offset_in(1, 5), frame));
  EXPECT_EQ(pools.offset_of(frame), offset_in(1, 5));
  pools.hold(frame.ref);
  pools.drop(frame.ref);
  EXPECT_TRUE(owner.returned.empty());
  EXPECT_EQ(pools.in_use(pool, 1), 1u);
  pools.drop(frame.ref);
  EXPECT_THAT(owner.returned, testing::ElementsAre(5u));
  EXPECT_EQ(pools.in_use(pool, 1), 0u);
}

TEST(PayloadPools, RefuseASlotThatTheSwitchStillHolds) {
  PayloadPools pools(kGeometry);
  const std::uint32_t pool = *pools.pool_for(1000);
  Frame first = frame_of(100), second = frame_of(100);
  ASSERT_TRUE(pools.accept(pool, 0, offset_in(0, 3), first));
  EXPECT_FALSE(pools.accept(pool, 0, offset_in(0, 3), second));
  EXPECT_FALSE(pools.accept(pool, 0, offset_in(0, 3) + 64, second));
  pools.drop(first.ref);
  EXPECT_TRUE(pools.accept(pool, 0, offset_in(0, 3), second));
}

// For any offset of a client: accepted exactly if the whole payload is in one slot of its own area.
RC_GTEST_PROP(PayloadPools, AcceptOnlyPayloadsWithinOneSlotOfTheArea, ()) {
  PayloadPools pools(kGeometry);
  const std::uint32_t pool = *pools.pool_for(1000);
  const auto near = rc::gen::map(
      rc::gen::tuple(rc::gen::inRange<std::uint64_t>(0, 3), rc::gen::inRange<int>(-5000, 5000)),
      [](const std::tuple<std::uint64_t, int>& t) {
        return std::get<0>(t) * kGeometry.area_bytes() + static_cast<std::uint64_t>(std::get<1>(t));
      });
  const std::uint64_t offset =
      *rc::gen::oneOf(near, rc::gen::arbitrary<std::uint64_t>(),
                      rc::gen::inRange<std::uint64_t>(0, kGeometry.pool_bytes()));
  Frame frame = frame_of(*rc::gen::inRange<std::uint16_t>(1, 5000));
  const std::uint64_t start = kGeometry.area_bytes();
  const std::uint64_t end = start + std::uint64_t{kGeometry.slots_per_area} * kGeometry.slot_bytes;
  const bool inside =
      offset >= start && offset < end &&
      (offset - start) % kGeometry.slot_bytes + frame.payload_len <= kGeometry.slot_bytes;
  RC_ASSERT(pools.accept(pool, 1, offset, frame) == inside);
  RC_ASSERT(pools.in_use(pool, 1) == (inside ? 1u : 0u));
}

TEST(PayloadPools, CopyIntoTheSwitchsAreaUntilItIsFull) {
  PayloadPools pools(kGeometry);
  const std::uint32_t pool = *pools.pool_for(1000);
  const std::vector<std::uint8_t> data(4096, 0x5A);
  std::vector<wire::BufferRef> refs;
  for (std::uint32_t n = 0; n < kGeometry.slots_per_area; ++n) {
    Frame frame = frame_of(0);
    frame.set_external_payload(data, wire::kNoBuffer);
    ASSERT_TRUE(pools.copy_in(pool, frame));
    EXPECT_NE(frame.external, data.data());
    EXPECT_TRUE(std::equal(data.begin(), data.end(), frame.payload().begin()));
    refs.push_back(frame.ref);
  }
  Frame frame = frame_of(0);
  frame.set_external_payload(data, wire::kNoBuffer);
  EXPECT_FALSE(pools.copy_in(pool, frame));
  pools.drop(refs.back());
  EXPECT_TRUE(pools.copy_in(pool, frame));
}

TEST(PayloadPools, KeepUsersApart) {
  PayloadPools pools(kGeometry);
  const std::uint32_t a = *pools.pool_for(1000), b = *pools.pool_for(1001);
  EXPECT_NE(a, b);
  EXPECT_EQ(*pools.pool_for(1000), a);
  EXPECT_NE(pools.fd(a), pools.fd(b));
}

TEST(PayloadPools, RefuseOneUserTooMany) {
  PayloadPools pools(kGeometry);
  for (uid_t uid = 0; uid < PayloadPools::kMaxUsers; ++uid) ASSERT_TRUE(pools.pool_for(uid));
  const auto refused = pools.pool_for(PayloadPools::kMaxUsers);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, testing::HasSubstr("63 users"));
}

// This process's mappings of pools.
std::size_t mapped_pools() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("cepheus-payloads") < line.size();
  return count;
}

TEST(PayloadPools, FreeAPoolWithoutClientsAndHeldPayloads) {
  PayloadPools pools(kGeometry);
  const std::uint32_t pool = *pools.pool_for(1000);
  ASSERT_EQ(*pools.pool_for(1000), pool);
  Frame frame = frame_of(100);
  ASSERT_TRUE(pools.accept(pool, 0, offset_in(0, 3), frame));
  pools.leave(pool);
  pools.leave(pool);
  EXPECT_EQ(mapped_pools(), 1u) << "a frame is on its way";
  pools.drop(frame.ref);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (mapped_pools() != 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();  // another thread frees it
  }
  EXPECT_EQ(mapped_pools(), 0u);
}

TEST(PayloadPools, ServeAnyNumberOfUsersOneAfterTheOther) {
  PayloadPools pools(kGeometry);
  const std::uint32_t stays = *pools.pool_for(0);
  for (uid_t uid = 1; uid < 3 * PayloadPools::kMaxUsers; ++uid) {
    const auto pool = pools.pool_for(uid);
    ASSERT_TRUE(pool) << uid;
    ASSERT_NE(*pool, stays);
    pools.leave(*pool);
  }
  EXPECT_EQ(*pools.pool_for(0), stays);
}

// Fills the slots of area 0 with frames for `share` until it is used up; false if slots run out
// first.
bool fill(PayloadPools& pools, std::uint32_t pool, EgressShare& share, std::uint32_t& slot) {
  for (; slot < pools.geometry().slots_per_area; ++slot) {
    Frame frame = frame_of(256);
    const std::uint64_t offset = std::uint64_t{slot} * pools.geometry().slot_bytes;
    if (!pools.accept(pool, 0, offset, frame)) return false;
    if (!share.try_add(frame.ref)) return pools.drop(frame.ref), true;
  }
  return false;
}

TEST(EgressShare, LeavesSlotsForTheLastReceiverWhenAllOthersStopOneAfterTheOther) {
  for (const std::uint32_t hosts : {3u, 8u, 100u, 1000u}) {
    PayloadPools pools(PoolGeometry::for_hosts(hosts, 256));
    const std::uint32_t pool = *pools.pool_for(1000);
    std::uint32_t slot = 0;
    std::vector<EgressShare> stopped(hosts - 2, EgressShare(pools));
    for (EgressShare& share : stopped) ASSERT_TRUE(fill(pools, pool, share, slot)) << hosts;
    const std::uint32_t guaranteed = pools.geometry().guaranteed_slots();
    EXPECT_GE(pools.geometry().slots_per_area - pools.in_use(pool, 0), guaranteed) << hosts;
    EgressShare healthy(pools);
    const std::uint32_t before = slot;
    ASSERT_TRUE(fill(pools, pool, healthy, slot)) << hosts;
    EXPECT_GE(slot - before, guaranteed) << hosts;
  }
}

TEST(EgressShare, LetsOneSlowReceiverLagByHalfOfTheSlots) {
  PayloadPools pools(kGeometry);
  EgressShare share(pools);
  std::uint32_t slot = 0;
  ASSERT_TRUE(fill(pools, *pools.pool_for(1000), share, slot));
  EXPECT_GE(slot, 4 * 128u);
}

TEST(PoolGeometry, HasSpaceForEveryNumberOfHostsOfAFabric) {
  for (std::uint32_t hosts = 1; hosts <= PoolGeometry::kMaxHosts; ++hosts) {
    const PoolGeometry geometry = PoolGeometry::for_hosts(hosts, 4096);
    ASSERT_TRUE(geometry.is_sane()) << hosts;
    // Each egress has its own slot of each area, and some are left for all.
    ASSERT_GT(geometry.slots_per_area, geometry.guaranteed_slots() * geometry.areas) << hosts;
  }
}

TEST(PayloadPools, HidePayloadsOfNoUserFromAllUsers) {
  PayloadPools pools(kGeometry);
  const std::uint32_t user = *pools.pool_for(1000);
  const std::vector<std::uint8_t> payload(1000, 0x5A);
  Frame frame = frame_of(1000);
  frame.external = payload.data();
  ASSERT_TRUE(pools.keep_private(frame));
  EXPECT_NE(PayloadPools::pool_of(frame.ref), user);
  EXPECT_THAT(frame.payload(), testing::Each(0x5A));
  EXPECT_EQ(pools.in_use(user, kGeometry.switch_area()), 0u);
  pools.drop(frame.ref);
  EXPECT_EQ(pools.in_use(frame.ref), 0u);
}

}  // namespace
}  // namespace cepheus::fabric
