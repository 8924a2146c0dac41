// Sender groups through the C API, over a device that the test plays: the sender's side and a
// receiver's.
#include <endian.h>
#include <gmock/gmock.h>
#include <mcast/recovery.h>
#include <mcast/senders.h>

#include "libmcast/fake_group.h"

namespace cepheus::mcast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::MrpReject;
using wire::MrpType;
using wire::SenderGroupMessage;

constexpr std::uint64_t kWhole = SenderGroupMessage::kWholeShare;
constexpr wire::Ipv4 kSwitch(10, 255, 0, 1);
constexpr std::uint32_t kVirtualQpn = 0xC00010;

mcast_group_params_t bulk_params() {
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_BULK;
  params.sender_group = 1;
  params.virtual_qpn = kVirtualQpn;
  return params;
}

class SenderGroup : public FakeGroup {
 protected:
  void make() { FakeGroup::make(bulk_params()); }

  // --- As a receiver of 10.0.0.2.
  SenderGroupMessage from_sender(MrpType type, std::uint64_t share) {
    SenderGroupMessage m;
    m.header.type = type;
    m.header.epoch = 1;
    m.header.mcst_id = kLeader;
    m.header.instance = kInstance;
    m.addressed = device_.address;
    m.virtual_qpn = wire::Qpn(kVirtualQpn);
    m.sender_qpn = wire::Qpn(0x500);
    m.start = wire::Psn(0x4711);
    m.share = share;
    m.add(own_name());
    return m;
  }
  void process(const SenderGroupMessage& m) {
    device_.inject(m.sender(), m);
    progress();
  }
  void join() {
    process(from_sender(MrpType::kInstall, kWhole / 2));
    process(from_sender(MrpType::kInstall, 0));
    device_.sent_of_sender_groups();
    ASSERT_EQ(mcast_group_test(group_), MCAST_OK) << attr().reason;
  }

  // --- As the sender to 10.0.0.2 and .3.
  static mcast_member_t receiver(std::uint32_t i) {
    return {htonl(wire::Ipv4(10, 0, 0, 1).value() + i), htonl(0x500 + i), htons(41000), 0,
            htonl(i)};
  }
  mcast_status_t lead_two(const std::vector<mcast_region_t>& regions = {}) {
    const std::vector<mcast_member_t> names{receiver(1), own(), receiver(2)};
    const auto status = mcast_group_lead_regions(group_, names.data(), names.size(), regions.data(),
                                                 regions.size());
    progress();
    if (status == MCAST_OK) measured();
    return status;
  }
  // Both receivers have answered about the path MTU, with this one at most; 0: no limit.
  void measured(std::uint16_t mtu = 0) {
    SenderGroupMessage measures = last_sent();
    EXPECT_EQ(measures.header.flags, SenderGroupMessage::kFresh | SenderGroupMessage::kMeasures);
    EXPECT_EQ(measures.path_mtu, attr().path_mtu);
    if (mtu != 0) measures.path_mtu = mtu;
    installed(measures, 1);
    installed(measures, 2);
  }
  // The sender's last message.
  SenderGroupMessage last_sent() {
    const auto sent = device_.sent_of_sender_groups();
    EXPECT_FALSE(sent.empty());
    return sent.empty() ? SenderGroupMessage() : sent.back();
  }
  void answer(const SenderGroupMessage& requested, MrpType type, std::uint16_t flags,
              std::uint32_t receiver, std::uint64_t share = 0) {
    SenderGroupMessage m = requested;
    m.header.type = type;
    m.header.flags = flags;
    m.receiver_count = m.region_count = 0;
    m.share = share;
    m.add({wire::Ipv4(10, 0, 0, static_cast<std::uint8_t>(1 + receiver)),
           wire::Qpn(0x500 + receiver)});
    receive_from(m.receivers[0].host, m);
  }
  void receive_from(wire::Ipv4 host, const SenderGroupMessage& m) {
    device_.inject(host, m);
    progress();
  }
  void installed(const SenderGroupMessage& requested, std::uint32_t receiver) {
    answer(requested, MrpType::kInstalled, static_cast<std::uint16_t>(requested.header.type),
           receiver, kWhole / 2);
  }
  void become_active_sender() {
    ASSERT_EQ(lead_two(), MCAST_OK) << mcast_last_error();
    requested_ = last_sent();
    installed(requested_, 1);
    installed(requested_, 2);
    ASSERT_EQ(mcast_group_test(group_), MCAST_OK) << attr().reason;
    device_.sent_of_sender_groups();
  }

  SenderGroupMessage requested_;  // its first INSTALL
};

TEST_F(SenderGroup, AsItsSenderConnectsToTheAliasOnceAllAreThere) {
  make();
  ASSERT_EQ(lead_two(), MCAST_OK) << mcast_last_error();
  const SenderGroupMessage requested = last_sent();
  EXPECT_EQ(requested.header.type, MrpType::kInstall);
  EXPECT_EQ(requested.header.flags, SenderGroupMessage::kFresh);
  EXPECT_EQ(requested.sender(), device_.address);
  EXPECT_EQ(requested.sender_qpn, own_name().qpn);
  EXPECT_EQ(requested.control_port, own_name().control_port);
  EXPECT_EQ(requested.addressed, wire::Ipv4(10, 0, 0, 2)) << "the first that is not the sender";
  ASSERT_EQ(requested.receiver_count, 2u);
  EXPECT_EQ(requested.receivers[1].token, 2u);
  installed(requested, 1);
  EXPECT_EQ(mcast_group_test(group_), MCAST_INPROGRESS);
  EXPECT_THAT(pair().states, ElementsAre(IBV_QPS_INIT));
  installed(requested, 2);
  EXPECT_EQ(mcast_group_test(group_), MCAST_OK);
  EXPECT_THAT(pair().states, ElementsAre(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS));
  EXPECT_EQ(pair().remote, wire::Ipv4(10, 0, 0, 2));
  EXPECT_EQ(requested.virtual_qpn, wire::Qpn(kVirtualQpn)) << "the caller's, no other";
  EXPECT_EQ(pair().remote_qpn, kVirtualQpn);
  EXPECT_EQ(pair().send_psn, requested.start.value());
  EXPECT_LT(requested.start.value(), 0xFF0000u);
  EXPECT_EQ(last_sent().share, 0u) << "the receivers are told";
  EXPECT_TRUE(attr().is_leader);
  EXPECT_EQ(attr().members, 3u);
  EXPECT_EQ(attr().epoch, 1);
  EXPECT_EQ(attr().mcst_id, device_.address.value());
}

TEST_F(SenderGroup, SendsNoMoreThanItsReceiversSwitchesTake) {
  make();
  ASSERT_EQ(lead_two(), MCAST_OK) << mcast_last_error();
  SenderGroupMessage requested = last_sent();
  EXPECT_EQ(requested.window, 0u) << "the sender knows no queue";
  requested.window = 9;
  installed(requested, 1);
  requested.window = 4;
  installed(requested, 2);
  ASSERT_EQ(mcast_group_test(group_), MCAST_OK) << attr().reason;
  EXPECT_EQ(attr().window, 4u);
  EXPECT_EQ(attr().max_message, 4 * 1024u);
  Op op;
  EXPECT_EQ(mcast_send(group_, kData, 4 * 1024 + 1, nullptr, 1, &op), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("a queue on the way takes 4 packets"));
}

TEST_F(SenderGroup, AsAReceiverConnectsToTheSenderAndIsNotified) {
  make();
  process(from_sender(MrpType::kInstall, kWhole / 2));
  EXPECT_EQ(pair().remote, kLeader);
  EXPECT_EQ(pair().remote_qpn, kVirtualQpn);
  EXPECT_EQ(pair().receive_psn, 0x4711u);
  const SenderGroupMessage answer = last_sent();
  EXPECT_EQ(answer.header.type, MrpType::kInstalled);
  EXPECT_EQ(answer.share, kWhole / 2);
  EXPECT_EQ(mcast_group_test(group_), MCAST_INPROGRESS);
  process(from_sender(MrpType::kInstall, 0));
  EXPECT_EQ(mcast_group_test(group_), MCAST_OK);
  EXPECT_FALSE(attr().is_leader);
  EXPECT_EQ(attr().mcst_id, kLeader.value());
}

TEST_F(SenderGroup, StaysFailedIfItsSenderActivatesItBeforeTheFailureArrives) {
  make();
  process(from_sender(MrpType::kInstall, kWhole / 2));
  ASSERT_EQ(mcast_group_stop(group_, "enough"), MCAST_OK);
  process(from_sender(MrpType::kInstall, 0));
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_FABRIC);
  const SenderGroupMessage sent = last_sent();
  EXPECT_EQ(sent.header.type, MrpType::kReject);
  EXPECT_EQ(sent.header.flags, static_cast<std::uint16_t>(MrpReject::kMemberFailed));
}

TEST_F(SenderGroup, TakesSendsOfItsSenderOnly) {
  make();
  join();
  Op send, receive;
  EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("only the member that leads a sender group sends"));
  EXPECT_EQ(mcast_write(group_, kData, 8, nullptr, 7, 0, nullptr, &send), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("only the member that leads"));
  EXPECT_THAT(pair().sends, IsEmpty());
  EXPECT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &receive), MCAST_INPROGRESS);
  deliver(kData, 3);
  EXPECT_EQ(receive.status, MCAST_OK);
  EXPECT_EQ(receive.imm, 3u);
}

TEST_F(SenderGroup, OfItsSenderSendsAndWrites) {
  make();
  become_active_sender();
  Op send, write;
  EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_INPROGRESS);
  EXPECT_EQ(mcast_write(group_, kData, 8, nullptr, 7, 4096, nullptr, &write), MCAST_INPROGRESS);
  ASSERT_EQ(pair().sends.size(), 2u);
  EXPECT_EQ(pair().sends[1].rkey, 7u) << "the region's number";
  EXPECT_EQ(pair().sends[1].remote_address, 4096u);
  device_.complete_send(pair());
  complete_send();
  EXPECT_EQ(send.status, MCAST_OK);
  EXPECT_EQ(write.status, MCAST_OK);
}

TEST_F(SenderGroup, RegionsTravelWithTheNames) {
  make();
  EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_OK);
  EXPECT_EQ(mcast_region_publish(group_, 9, buffer_ + 8, 16), MCAST_OK);
  mcast_region_t own_regions[3];
  size_t count = 1;
  EXPECT_EQ(mcast_group_regions(group_, own_regions, &count), MCAST_ERR_INVALID);
  EXPECT_EQ(count, 2u);
  count = 3;
  ASSERT_EQ(mcast_group_regions(group_, own_regions, &count), MCAST_OK);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(own_regions[0].number, htons(7));
  EXPECT_EQ(own_regions[0].target.ipv4, htonl(device_.address.value()));
  EXPECT_EQ(own_regions[0].target.address, htobe64(reinterpret_cast<std::uintptr_t>(buffer_)));
  EXPECT_EQ(own_regions[1].target.length, htobe64(16));
  EXPECT_THAT(device_.published, IsEmpty());

  mcast_region_t theirs{};
  theirs.target = {receiver(2).ipv4, htonl(0xAB), htobe64(0x1000), htobe64(64)};
  theirs.number = htons(7);
  ASSERT_EQ(lead_two({own_regions[0], theirs, own_regions[1]}), MCAST_OK) << mcast_last_error();
  const SenderGroupMessage requested = last_sent();
  ASSERT_EQ(requested.region_count, 1u) << "nobody writes to the sender";
  EXPECT_EQ(requested.regions[0], (SenderGroupMessage::Region{1, {7, 0xAB, 0x1000, 64}}));
  installed(requested, 1);
  installed(requested, 2);
  EXPECT_EQ(mcast_region_test(group_), MCAST_OK);
  EXPECT_THAT(device_.published, IsEmpty()) << "switches are told by INSTALL";
}

TEST_F(SenderGroup, RegionsAreFixedOnceItIsRegistered) {
  make();
  EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, 8), MCAST_OK);
  EXPECT_EQ(mcast_region_test(group_), MCAST_INPROGRESS);
  EXPECT_EQ(mcast_region_revoke(group_, 7), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("revoked with the group: destroy it"));
  join();
  EXPECT_EQ(mcast_region_test(group_), MCAST_OK);
  EXPECT_EQ(mcast_region_publish(group_, 8, buffer_, 8), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("publish them before"));
}

TEST_F(SenderGroup, RefusesListsThatDoNotFit) {
  make();
  mcast_region_t strangers{};
  strangers.target.ipv4 = htonl(wire::Ipv4(10, 0, 0, 9).value());
  EXPECT_EQ(lead_two({strangers}), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("a region of 10.0.0.9, which is not a member"));
  const mcast_member_t others[] = {receiver(1), receiver(2)};
  EXPECT_EQ(mcast_group_lead(group_, others, 2), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("the leader itself, is not among the members"));
  const mcast_member_t alone[] = {own()};
  EXPECT_EQ(mcast_group_lead(group_, alone, 1), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("at least one receiver"));
  EXPECT_THAT(device_.sent_of_sender_groups(), IsEmpty());
  ASSERT_EQ(lead_two(), MCAST_OK) << "after all that";
  EXPECT_EQ(lead_two(), MCAST_ERR_INVALID) << "once";
}

TEST_F(SenderGroup, WithOtherKindsOfRegionsOrLanesIsRefused) {
  mcast_group_params_t params = bulk_params();
  params.lane = MCAST_LANE_EAGER;
  EXPECT_EQ(mcast_group_create(context_, &params, &group_), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("sender_group: only bulk lanes"));
  for (int mcast_group_params_t::*other :
       {&mcast_group_params_t::same_key, &mcast_group_params_t::per_request}) {
    params = bulk_params();
    params.*other = 1;
    EXPECT_EQ(mcast_group_create(context_, &params, &group_), MCAST_ERR_INVALID);
    EXPECT_THAT(mcast_last_error(), HasSubstr("without same_key or per_request"));
  }
}

TEST_F(SenderGroup, RefusesVirtualQpnsThatAreNone) {
  mcast_group_params_t params = bulk_params();
  for (const std::uint32_t wrong : {1u, 0xBFFFFFu, 0xFFFFFFu, 0x1C00010u}) {
    params.virtual_qpn = wrong;
    EXPECT_EQ(mcast_group_create(context_, &params, &group_), MCAST_ERR_INVALID) << wrong;
    EXPECT_THAT(mcast_last_error(), HasSubstr("use one of 0xC00000 to 0xFFFFFE"));
  }
  params = bulk_params();
  params.sender_group = 0;
  EXPECT_EQ(mcast_group_create(context_, &params, &group_), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("only sender groups have one"));
}

TEST_F(SenderGroup, IsNotLedWithoutAVirtualQpn) {
  mcast_group_params_t params = bulk_params();
  params.virtual_qpn = 0;
  FakeGroup::make(params);
  EXPECT_EQ(lead_two(), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("virtual_qpn is 0"));
  EXPECT_THAT(device_.sent_of_sender_groups(), IsEmpty());
  join();  // as a receiver it needs none
}

// A REMOVE of the first, which is repeated until all have answered, would end the second.
TEST_F(SenderGroup, SharesNoVirtualQpnWithAnotherOfItsContext) {
  make();
  become_active_sender();
  const mcast_group_params_t params = bulk_params();
  mcast_group_h second = nullptr;
  ASSERT_EQ(mcast_group_create(context_, &params, &second), MCAST_OK) << mcast_last_error();
  mcast_member_t name;
  ASSERT_EQ(mcast_group_member(second, &name), MCAST_OK);
  const auto lead = [&] {
    const mcast_member_t names[] = {name, receiver(1), receiver(2)};
    return mcast_group_lead(second, names, 3);
  };
  EXPECT_EQ(lead(), MCAST_ERR_ID_IN_USE);
  EXPECT_THAT(mcast_last_error(), HasSubstr("create fresh groups with another virtual_qpn"));
  EXPECT_EQ(mcast_group_test(group_), MCAST_OK);
  drop();
  EXPECT_EQ(lead(), MCAST_ERR_ID_IN_USE) << "not all have answered REMOVE";
  const SenderGroupMessage removed = last_sent();
  ASSERT_EQ(removed.header.type, MrpType::kRemove);
  installed(removed, 1);
  installed(removed, 2);
  EXPECT_EQ(lead(), MCAST_OK) << mcast_last_error();
  mcast_group_destroy(second);
}

TEST_F(SenderGroup, WithAnotherProgramsVirtualQpnNamesTheRemedy) {
  make();
  ASSERT_EQ(lead_two(), MCAST_OK);
  SenderGroupMessage m = last_sent();
  m.header.type = MrpType::kReject;
  m.header.flags = static_cast<std::uint16_t>(MrpReject::kIdInUse);
  m.receiver_count = m.region_count = 0;
  receive_from(kSwitch, m);
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_ID_IN_USE);
  EXPECT_THAT(attr().reason, HasSubstr("has the virtual QPN 0xc00010"));
  EXPECT_THAT(attr().reason, HasSubstr("create fresh groups with another virtual_qpn"));
  EXPECT_EQ(last_sent().virtual_qpn, wire::Qpn(kVirtualQpn)) << "it tries no other";
}

TEST_F(SenderGroup, OverADeviceThatNumbersQueuePairsSoIsRefused) {
  device_.next_qpn = 0xC00000;
  const mcast_group_params_t params = bulk_params();
  EXPECT_EQ(mcast_group_create(context_, &params, &group_), MCAST_ERR_NO_DEVICE);
  EXPECT_THAT(mcast_last_error(), HasSubstr("create groups without sender_group"));
}

TEST_F(SenderGroup, RegionsOfAnotherGroupAreNotBrought) {
  FakeGroup::make(MCAST_LANE_BULK);
  size_t count = 0;
  EXPECT_EQ(mcast_group_regions(group_, nullptr, &count), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(),
              HasSubstr("regions are named to the sender of a sender group only"));
  mcast_region_t theirs{};
  theirs.target.ipv4 = receiver(2).ipv4;
  EXPECT_EQ(lead_two({theirs}), MCAST_ERR_INVALID);
}

// Members must be of one kind. A member of the other kind refuses.
TEST_F(SenderGroup, AndOtherGroupsDoNotMix) {
  make();
  inject(MrpType::kRegister);
  EXPECT_THAT(sent(), ElementsAre("reject queue pair unknown to its host 10.0.0.1"));
  drop();
  FakeGroup::make(MCAST_LANE_BULK);
  process(from_sender(MrpType::kInstall, kWhole / 2));
  const SenderGroupMessage refusal = last_sent();
  EXPECT_EQ(refusal.header.type, MrpType::kReject);
  EXPECT_EQ(refusal.header.flags, static_cast<std::uint16_t>(MrpReject::kNotMember));
  EXPECT_EQ(mcast_group_test(group_), MCAST_INPROGRESS);
}

TEST_F(SenderGroup, ThatStopsNotifiesItsSenderOrItsReceivers) {
  make();
  join();
  EXPECT_EQ(mcast_group_stop(group_, "enough"), MCAST_OK);
  progress();
  EXPECT_EQ(last_sent().header.flags, static_cast<std::uint16_t>(MrpReject::kMemberFailed));
  drop();
  make();
  become_active_sender();
  EXPECT_EQ(mcast_group_stop(group_, "enough"), MCAST_OK);
  progress();
  const SenderGroupMessage m = last_sent();
  EXPECT_EQ(m.header.type, MrpType::kRemove);
  EXPECT_EQ(m.header.flags, static_cast<std::uint16_t>(MrpReject::kMemberFailed));
}

TEST_F(SenderGroup, ThatIsDestroyedIsRemovedUntilAllHaveAnswered) {
  make();
  become_active_sender();
  drop();
  const SenderGroupMessage requested = last_sent();
  EXPECT_EQ(requested.header.type, MrpType::kRemove);
  EXPECT_EQ(requested.receiver_count, 2u);
  installed(requested, 1);
  installed(requested, 2);
  EXPECT_THAT(device_.sent_of_sender_groups(), IsEmpty());
}

}  // namespace
}  // namespace cepheus::mcast
