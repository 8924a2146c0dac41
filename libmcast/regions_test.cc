// Regions and WRITEs of one member: its messages to its switch, and its posts.
#include <endian.h>
#include <gmock/gmock.h>
#include <mcast/verbs.h>
#include <mcast/write.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmcast/fake_group.h"
#include "wire/announcement.h"

namespace cepheus::mcast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using wire::MrpType;

class RegionsOfAMember : public FakeGroup {
 protected:
  void publish(std::uint16_t number) {
    ASSERT_EQ(mcast_region_publish(group_, number, buffer_, sizeof buffer_), MCAST_OK)
        << mcast_last_error();
  }
  // The switch confirms the newest publication.
  void confirm_regions() {
    FakeGroup::confirm_regions();
    progress();
  }
};

TEST_F(RegionsOfAMember, OfTheLeaderHoldItsActivationIfItPublishesThemMeanwhile) {
  make(MCAST_LANE_BULK);
  lead();
  confirm(MrpType::kRegister);
  sent();
  publish(7);
  confirm(MrpType::kConnect);
  EXPECT_THAT(sent(), IsEmpty());
  confirm_regions();
  EXPECT_THAT(sent(), ElementsAre("activate"));
  confirm(MrpType::kActivate);
  EXPECT_EQ(mcast_group_test(group_), MCAST_OK);
}

TEST_F(RegionsOfAMember, ComeAndGoInOperation) {
  make_active(MCAST_LANE_BULK);
  EXPECT_EQ(mcast_region_test(group_), MCAST_OK) << "there are none";
  const std::size_t before = device_.regions;
  publish(7);
  progress();
  EXPECT_EQ(mcast_region_test(group_), MCAST_INPROGRESS);
  EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, 1), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("published already"));
  confirm_regions();
  EXPECT_EQ(mcast_region_test(group_), MCAST_OK);
  EXPECT_EQ(mcast_region_revoke(group_, 8), MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_region_revoke(group_, 7), MCAST_OK);
  progress();
  EXPECT_EQ(device_.published.back().count, 0u);
  EXPECT_EQ(device_.regions, before + 1) << "the switch may still let WRITEs pass";
  confirm_regions();
  EXPECT_EQ(device_.regions, before);
  EXPECT_EQ(mcast_region_test(group_), MCAST_OK);
}

TEST_F(RegionsOfAMember, AreGivenBackWithTheGroup) {
  make(MCAST_LANE_BULK);
  const std::size_t before = device_.regions;
  publish(7);
  drop();
  EXPECT_EQ(device_.regions, before);
}

TEST_F(RegionsOfAMember, ArePartsOfWhatIsRegisteredOnce) {
  make(MCAST_LANE_BULK);
  mcast_mem_h memory = nullptr;
  ASSERT_EQ(mcast_mem_register_shared(context_, buffer_, sizeof buffer_, &memory), MCAST_OK);
  EXPECT_EQ(device_.registrations.back(),
            static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ));
  const std::size_t before = device_.registrations.size(), regions = device_.regions;
  ASSERT_EQ(mcast_region_publish_part(group_, 7, memory, 8, 64), MCAST_OK) << mcast_last_error();
  ASSERT_EQ(mcast_region_publish_part(group_, 8, memory, 0, sizeof buffer_), MCAST_OK);
  join();
  ASSERT_FALSE(device_.published.empty());
  const auto publication = device_.published.back().list();
  ASSERT_EQ(publication.size(), 2u);
  EXPECT_EQ(publication[0].number, 7);
  EXPECT_EQ(publication[0].rkey, mcast_mem_verbs(memory)->rkey);
  EXPECT_EQ(publication[0].virtual_address, reinterpret_cast<std::uintptr_t>(buffer_ + 8));
  EXPECT_EQ(publication[0].length, 64u);
  EXPECT_EQ(publication[1].rkey, publication[0].rkey);
  EXPECT_EQ(mcast_region_publish_part(group_, 7, memory, 0, 8), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("published already"));
  EXPECT_EQ(mcast_region_revoke(group_, 7), MCAST_OK);
  progress();
  confirm_regions();
  drop();
  EXPECT_EQ(device_.registrations.size(), before);
  EXPECT_EQ(device_.regions, regions) << "it is the caller's";
  mcast_mem_deregister(memory);
  EXPECT_EQ(device_.regions, regions - 1);
}

TEST_F(RegionsOfAMember, AreNoPartsOfMemoryThatOthersMustNotWriteTo) {
  make(MCAST_LANE_BULK);
  mcast_mem_h open = nullptr, closed = nullptr, foreign = nullptr;
  mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
  mcast_context_h other = nullptr;
  ASSERT_EQ(mcast_context_create(&params, &other), MCAST_OK);
  ASSERT_EQ(mcast_mem_register_writable(context_, buffer_, sizeof buffer_, &open), MCAST_OK);
  ASSERT_EQ(mcast_mem_register(context_, buffer_, sizeof buffer_, &closed), MCAST_OK);
  ASSERT_EQ(mcast_mem_register_writable(other, buffer_, sizeof buffer_, &foreign), MCAST_OK);
  const auto part = [&](mcast_mem_h memory, size_t offset, size_t length) {
    return mcast_region_publish_part(group_, 7, memory, offset, length);
  };
  EXPECT_EQ(part(closed, 0, 8), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("mcast_mem_register_writable"));
  EXPECT_EQ(part(foreign, 0, 8), MCAST_ERR_INVALID);
  EXPECT_EQ(part(open, 8, sizeof buffer_), MCAST_ERR_INVALID);
  EXPECT_EQ(part(open, sizeof buffer_ + 1, 1), MCAST_ERR_INVALID);
  EXPECT_EQ(part(open, 1, SIZE_MAX), MCAST_ERR_INVALID);
  EXPECT_EQ(part(open, 0, 0), MCAST_ERR_INVALID);
  EXPECT_EQ(part(nullptr, 0, 8), MCAST_ERR_INVALID);
  EXPECT_EQ(part(open, sizeof buffer_ - 8, 8), MCAST_OK);
  drop();
  make(MCAST_LANE_BULK, nullptr, /*same_key=*/true);
  EXPECT_EQ(part(open, 0, 8), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("mcast_region_publish()"));
  for (mcast_mem_h memory : {open, closed, foreign}) mcast_mem_deregister(memory);
  mcast_context_destroy(other);
}

TEST_F(RegionsOfAMember, AreWrittenToByNumberAndOffset) {
  make_active(MCAST_LANE_BULK);
  Op plain, publication;
  const std::uint32_t imm = 5;
  EXPECT_EQ(mcast_write(group_, kData, 8, nullptr, 7, 4096, nullptr, &plain), MCAST_INPROGRESS);
  EXPECT_EQ(mcast_write(group_, kData, 8, nullptr, 9, 0, &imm, &publication), MCAST_INPROGRESS);
  ASSERT_EQ(pair().sends.size(), 2u);
  EXPECT_EQ(pair().sends[0].opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(pair().sends[0].remote_address, 4096u);
  EXPECT_EQ(pair().sends[0].rkey, 7u);
  EXPECT_EQ(pair().sends[1].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(pair().sends[1].imm, 5u);
  complete_send();
  EXPECT_EQ(plain.status, MCAST_OK);
  EXPECT_EQ(plain.length, 8u);
  EXPECT_EQ(publication.calls, 0);
  drop();
}

TEST_F(RegionsOfAMember, ThatAreTooSmallEndTheGroupAndTheLeaderKnowsWhose) {
  make(MCAST_LANE_BULK);
  become_active_leader();
  Op write;
  ASSERT_EQ(mcast_write(group_, kData, 8, nullptr, 7, 0, nullptr, &write), MCAST_INPROGRESS);
  wire::MrpMessage refusal;
  refusal.header = registered().header;
  refusal.header.type = MrpType::kReject;
  refusal.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kRemoteAccess);
  refusal.add({wire::Ipv4(10, 0, 0, 3), wire::Qpn(0x502)});
  device_.inject(wire::Ipv4(10, 255, 0, 1), refusal);
  device_.complete_send(pair(), IBV_WC_REM_ACCESS_ERR);
  mcast_progress(context_);  // once: the name comes before the failure
  EXPECT_EQ(write.status, MCAST_ERR_FABRIC);
  EXPECT_THAT(attr().reason, HasSubstr("10.255.0.1 refused a WRITE: 10.0.0.3 (qp 0x502)"));
  EXPECT_THAT(attr().reason, HasSubstr("cepheusctl groups"));
}

TEST_F(RegionsOfAMember, OfOthersThatAreTooSmallEndTheGroup) {
  make_active(MCAST_LANE_BULK);
  inject(MrpType::kUnregister, static_cast<std::uint16_t>(wire::MrpReject::kRemoteAccess));
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_FABRIC);
  EXPECT_THAT(attr().reason, HasSubstr("a WRITE was refused"));
  EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, 8), MCAST_ERR_FABRIC);
  EXPECT_EQ(mcast_region_test(group_), MCAST_ERR_FABRIC);
}

TEST_F(RegionsOfAMember, LieAlikeOnAllMembersWithSameKey) {
  make(MCAST_LANE_BULK, nullptr, /*same_key=*/true);
  publish(0);
  publish(7);
  EXPECT_THAT(device_.chosen, ElementsAre(Pair(0u, 1u), Pair(0u, 8u)));
  become_active();
  EXPECT_THAT(device_.published, IsEmpty()) << "switches need to know nothing";
  EXPECT_EQ(mcast_region_test(group_), MCAST_OK);
  Op write;
  EXPECT_EQ(mcast_write(group_, kData, 8, nullptr, 7, 4096, nullptr, &write), MCAST_INPROGRESS);
  EXPECT_EQ(pair().sends[0].remote_address, 4096u);
  EXPECT_EQ(pair().sends[0].rkey, 8u);
  const std::size_t before = device_.regions;
  EXPECT_EQ(mcast_region_revoke(group_, 7), MCAST_OK);
  EXPECT_EQ(device_.regions, before - 1) << "its NIC refuses at once";
  EXPECT_EQ(mcast_region_test(group_), MCAST_OK);
  drop();
}

TEST_F(RegionsOfAMember, WithSameKeyNeedANicThatLetsKeysBeChosen) {
  make(MCAST_LANE_BULK, nullptr, /*same_key=*/true);
  device_.refuse_chosen_keys = EOPNOTSUPP;
  EXPECT_EQ(mcast_region_publish(group_, 1, buffer_, 8), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("lets no program choose keys"));
  device_.refuse_chosen_keys = EBUSY;
  EXPECT_EQ(mcast_region_publish(group_, 1, buffer_, 8), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("in use on this device"));
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.same_key = 1;
  mcast_group_h eager = nullptr;
  EXPECT_EQ(mcast_group_create(context_, &params, &eager), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("only bulk lanes have regions"));
}

TEST_F(RegionsOfAMember, AreNoneWhereWritesAreAnnounced) {
  make(MCAST_LANE_BULK, nullptr, /*same_key=*/false, /*per_request=*/true);
  EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, 8), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("mcast_write_to"));
  join();
  EXPECT_THAT(sent(), ElementsAre("confirm register 10.0.0.1")) << "its switch has to serve that";
  ASSERT_EQ(device_.published.size(), 1u);
  EXPECT_EQ(device_.published[0].header.flags, wire::Publication::kAnnounced);
  EXPECT_EQ(device_.published[0].count, 0u);
  confirm_regions();
  EXPECT_THAT(sent(), ElementsAre("confirm connect 10.0.0.1"));
  inject(MrpType::kActivate);
  Op write;
  EXPECT_EQ(mcast_write(group_, kData, 8, nullptr, 7, 0, nullptr, &write), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("mcast_write_to"));
}

class AnnouncedWrites : public RegionsOfAMember {
 protected:
  void SetUp() override {
    make(MCAST_LANE_BULK, nullptr, /*same_key=*/false, /*per_request=*/true);
    join();
    confirm_regions();
    inject(MrpType::kActivate);
    ASSERT_EQ(mcast_group_test(group_), MCAST_OK) << attr().reason;
  }
  // At member 10.0.0.(2 + i).
  static std::vector<mcast_target_t> targets(std::uint32_t count) {
    std::vector<mcast_target_t> all;
    for (std::uint32_t i = 0; i < count; ++i) {
      all.push_back({htonl(0x0A000002 + i), htonl(0x700 + i), htobe64(0x1000 + i), htobe64(64)});
    }
    return all;
  }
  mcast_status_t write(Op& op, const std::vector<mcast_target_t>& to) {
    return mcast_write_to(group_, kData, 8, nullptr, to.data(), to.size(), nullptr, &op);
  }
};

TEST_F(AnnouncedWrites, AreAnnouncedWithTheirAddresses) {
  Op one, two;
  ASSERT_EQ(write(one, targets(2)), MCAST_INPROGRESS) << mcast_last_error();
  ASSERT_EQ(write(two, targets(3)), MCAST_INPROGRESS);
  ASSERT_EQ(pair().sends.size(), 4u);
  const fake::Posted& sent = pair().sends[0];
  EXPECT_EQ(sent.rkey, wire::Announcement::kKey);
  EXPECT_FALSE(sent.is_signaled);
  const auto list =
      wire::Announcement::parse({static_cast<const std::uint8_t*>(sent.address), sent.length});
  ASSERT_TRUE(list && list->count() == 2);
  EXPECT_EQ((*list)[1], (wire::AnnouncedTarget{wire::Ipv4(10, 0, 0, 3), 0x701, 0x1001, 64}));
  EXPECT_EQ(pair().sends[1].opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(pair().sends[1].rkey, wire::Announcement::kNoKey);
  EXPECT_EQ(pair().sends[2].length, wire::Announcement::size_of(3)) << "the first lies on";
  EXPECT_NE(pair().sends[2].address, sent.address);
  complete_send();
  EXPECT_EQ(one.status, MCAST_OK);
  EXPECT_EQ(two.calls, 0);
  EXPECT_EQ(attr().sends_outstanding, 1u);
  drop();
}

TEST_F(AnnouncedWrites, AreAsManyAsAreOutstandingAtMost) {
  Op ops[kDepth + 1];
  for (unsigned i = 0; i < kDepth; ++i) ASSERT_EQ(write(ops[i], targets(1)), MCAST_INPROGRESS);
  EXPECT_EQ(write(ops[kDepth], targets(1)), MCAST_ERR_AGAIN);
  complete_send();
  EXPECT_EQ(write(ops[kDepth], targets(1)), MCAST_INPROGRESS);
  drop();
}

TEST_F(AnnouncedWrites, NameAsManyMembersAsAPacketHolds) {
  Op op;
  EXPECT_EQ(write(op, targets(43)), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("names at most 42"));
  EXPECT_EQ(write(op, targets(42)), MCAST_INPROGRESS);
  drop();
}

// The parent's pages would move at its next write, and the device would read the old ones.
TEST_F(AnnouncedWrites, LieInMemoryThatNoForkedChildHas) {
  Op op;
  ASSERT_EQ(write(op, targets(1)), MCAST_INPROGRESS);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  void* const memory = reinterpret_cast<void*>(
      reinterpret_cast<std::uintptr_t>(pair().sends[0].address) / page * page);
  const auto is_mapped = [&] {
    unsigned char resident = 0;
    return mincore(memory, page, &resident) == 0;
  };
  EXPECT_TRUE(is_mapped());
  const pid_t child = fork();
  if (child == 0) _exit(is_mapped() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  drop();
}

TEST_F(AnnouncedWrites, ThatFailEndTheirOperationOnce) {
  Op op;
  ASSERT_EQ(write(op, targets(2)), MCAST_INPROGRESS);
  device_.complete_send(pair(), IBV_WC_RETRY_EXC_ERR);  // the announcement
  progress();
  EXPECT_EQ(op.status, MCAST_ERR_FABRIC);
  EXPECT_EQ(op.calls, 1);
}

TEST_F(AnnouncedWrites, GoToMemoryThatOthersMayWriteTo) {
  mcast_mem_h closed = nullptr, open = nullptr;
  ASSERT_EQ(mcast_mem_register(context_, buffer_, sizeof buffer_, &closed), MCAST_OK);
  ASSERT_EQ(mcast_mem_register_writable(context_, buffer_, sizeof buffer_, &open), MCAST_OK);
  mcast_target_t target, part;
  EXPECT_EQ(mcast_mem_target(closed, buffer_, 8, &target), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("mcast_mem_register_writable"));
  EXPECT_EQ(mcast_mem_target(open, buffer_ + 1, sizeof buffer_, &target), MCAST_ERR_INVALID);
  ASSERT_EQ(mcast_mem_target(open, buffer_ + 8, 100, &target), MCAST_OK);
  EXPECT_EQ(ntohl(target.ipv4), 0x0A000001u);
  EXPECT_EQ(be64toh(target.address), reinterpret_cast<std::uintptr_t>(buffer_ + 8));
  EXPECT_EQ(mcast_target_part(&target, 96, 5, &part), MCAST_ERR_INVALID);
  ASSERT_EQ(mcast_target_part(&target, 96, 4, &part), MCAST_OK);
  EXPECT_EQ(be64toh(part.address), reinterpret_cast<std::uintptr_t>(buffer_ + 104));
  EXPECT_EQ(be64toh(part.length), 4u);
  mcast_mem_deregister(closed);
  mcast_mem_deregister(open);
}

TEST_F(RegionsOfAMember, AreNotAnnounced) {
  make_active(MCAST_LANE_BULK);
  Op op;
  EXPECT_EQ(mcast_write_to(group_, kData, 8, nullptr, nullptr, 0, nullptr, &op), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("per_request"));
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.per_request = 1;
  mcast_group_h eager = nullptr;
  EXPECT_EQ(mcast_group_create(context_, &params, &eager), MCAST_ERR_INVALID);
}

TEST_F(RegionsOfAMember, AreOfBulkLanes) {
  make_active(MCAST_LANE_EAGER);
  Op write;
  EXPECT_EQ(mcast_write(group_, kData, 8, nullptr, 7, 0, nullptr, &write), MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_region_publish(group_, 7, nullptr, 8), MCAST_ERR_INVALID);
}

}  // namespace
}  // namespace cepheus::mcast
