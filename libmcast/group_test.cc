// Groups and their context through the C API, over the fake device: registration, failures,
// callbacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mcast/verbs.h>
#include <mcast/wait.h>

#include <array>
#include <chrono>
#include <thread>

#include "libmcast/fake_group.h"

namespace cepheus::mcast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::MrpReject;
using wire::MrpType;

class Devices : public testing::Test {
 protected:
  mcast_status_t open() {
    const mcast_status_t status = mcast_context_create(nullptr, &context_);
    if (context_ != nullptr) mcast_context_destroy(context_);
    return status;
  }
  fake::Device& device_ = fake::Device::fresh();
  mcast_context_h context_ = nullptr;
};

TEST_F(Devices, ThatCanNotServeAreNamedWithTheReason) {
  device_.is_up = false;
  EXPECT_EQ(open(), MCAST_ERR_NO_DEVICE);
  EXPECT_THAT(mcast_last_error(), HasSubstr("fake0: no port is active"));
  device_.is_up = true;
  device_.is_ethernet = false;
  EXPECT_EQ(open(), MCAST_ERR_NO_DEVICE);
  EXPECT_THAT(mcast_last_error(), HasSubstr("fake0: its ports are not Ethernet"));
  device_.is_ethernet = true;
  device_.address = wire::Ipv4();
  EXPECT_EQ(open(), MCAST_ERR_NO_DEVICE);
  EXPECT_THAT(mcast_last_error(), HasSubstr("give its network interface an IPv4 address"));
  device_.is_there = false;
  EXPECT_EQ(open(), MCAST_ERR_NO_DEVICE);
  EXPECT_THAT(mcast_last_error(), HasSubstr("this host has no RDMA device"));
}

class GroupOverFake : public FakeGroup {
 protected:
  void start(Op& send, Op& receive) {
    ASSERT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_INPROGRESS);
    ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &receive), MCAST_INPROGRESS);
  }
};

TEST_F(GroupOverFake, AsAMemberConnectsConfirmsAndServes) {
  make(MCAST_LANE_EAGER);
  EXPECT_EQ(pair().receives.size(), kDepth) << "posted before anybody can send";
  EXPECT_THAT(pair().states, ElementsAre(IBV_QPS_INIT));
  inject(MrpType::kRegister);
  EXPECT_THAT(sent(), ElementsAre("confirm register 10.0.0.1"));
  EXPECT_THAT(pair().states, ElementsAre(IBV_QPS_INIT)) << "the path MTU is unknown";
  inject(MrpType::kConnect);
  EXPECT_THAT(pair().states, ElementsAre(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS));
  EXPECT_EQ(pair().remote, kId);
  EXPECT_EQ(pair().remote_qpn, wire::kVirtualQpn.value());
  EXPECT_EQ(pair().send_psn, wire::group_start_psn(kId, kEpoch).value());
  EXPECT_EQ(pair().receive_psn, pair().send_psn);
  EXPECT_THAT(sent(), ElementsAre("confirm connect 10.0.0.1"));
  EXPECT_EQ(mcast_send_eager(group_, "x", 1, 0), MCAST_ERR_INVALID) << "not active";
  inject(MrpType::kActivate);
  EXPECT_THAT(sent(), ElementsAre("confirm activate 10.0.0.1"));
  EXPECT_EQ(mcast_group_test(group_), MCAST_OK);
  EXPECT_EQ(attr().mcst_id, kId.value());
}

TEST_F(GroupOverFake, AsALeaderRegistersConnectsAndActivates) {
  make(MCAST_LANE_BULK);
  lead();
  EXPECT_THAT(sent(), ElementsAre("register 10.0.0.1 10.0.0.2 10.0.0.3"));
  EXPECT_EQ(pair().states.back(), IBV_QPS_INIT) << "the path MTU is unknown";
  EXPECT_EQ(mcast_group_test(group_), MCAST_INPROGRESS);
  confirm(MrpType::kRegister);
  EXPECT_THAT(sent(), ElementsAre("connect"));
  EXPECT_EQ(pair().states.back(), IBV_QPS_RTS);
  confirm(MrpType::kConnect);
  EXPECT_THAT(sent(), ElementsAre("activate"));
  confirm(MrpType::kActivate);
  EXPECT_EQ(mcast_group_test(group_), MCAST_OK);
  EXPECT_EQ(attr().members, 3u);
  EXPECT_EQ(attr().is_leader, 1);
}

// A switch or a member takes shorter packets than this device: 4 kB here, in packets of 512 bytes.
TEST_F(GroupOverFake, UsesThePathMtuOfItsGroup) {
  device_.mtu = IBV_MTU_4096;
  for (const bool leads : {false, true}) {
    open({});
    make(MCAST_LANE_BULK);
    EXPECT_EQ(attr().path_mtu, 4096u);
    if (leads) {
      lead();
      sent();
      confirm(MrpType::kRegister, wire::MrpPath{512, 16});
      const auto connect = device_.sent();
      ASSERT_FALSE(connect.empty());
      EXPECT_EQ(connect[0].path, (wire::MrpPath{512, 16}));
      confirm(MrpType::kConnect, wire::MrpPath{512, 16});
      confirm(MrpType::kActivate, wire::MrpPath{512, 16});
    } else {
      inject(MrpType::kRegister);
      const auto confirmed = device_.sent();
      ASSERT_EQ(confirmed.size(), 1u);
      EXPECT_EQ(confirmed[0].path, (wire::MrpPath{4096, 0}));
      become_active(16, 512);
    }
    EXPECT_EQ(pair().mtu, IBV_MTU_512);
    EXPECT_EQ(attr().path_mtu, 512u);
    EXPECT_EQ(attr().portion, 8 * 512u);
    EXPECT_EQ(attr().max_message, 16 * 512u);
    drop();
  }
}

// "most payload bytes": a device that takes less is no error.
TEST_F(GroupOverFake, HasAtMostTheWantedPathMtu) {
  for (const auto& [wanted, found] : {std::pair(512u, 512u), std::pair(4096u, 1024u)}) {
    open({.path_mtu = wanted});
    make(MCAST_LANE_BULK);
    EXPECT_EQ(attr().path_mtu, found);
    drop();
  }
}

// An administrator raised or lowered it since the context was opened.
TEST_F(GroupOverFake, HasThePathMtuThatItsPortHasWhenItIsCreated) {
  device_.mtu = IBV_MTU_2048;
  make(MCAST_LANE_BULK);
  EXPECT_EQ(attr().path_mtu, 2048u);
  device_.mtu = IBV_MTU_512;
  inject(MrpType::kRegister);
  EXPECT_EQ(device_.sent().at(0).path, (wire::MrpPath{2048, 0}));
  drop();
  make(MCAST_LANE_BULK);
  EXPECT_EQ(attr().path_mtu, 512u);
}

TEST_F(GroupOverFake, RefusesAPathMtuThatItsDeviceDoesNotHave) {
  for (const auto& [mtu, why] :
       {std::pair<std::uint16_t, const char*>(
            4096, "path MTU of 4096 bytes is larger than this device's 1024"),
        {700, "path MTU of 700 bytes is none of 256, "}}) {
    make(MCAST_LANE_BULK);
    join(0, mtu);
    EXPECT_EQ(attr().state, MCAST_GROUP_FAILED);
    EXPECT_THAT(attr().reason, HasSubstr(why));
    EXPECT_THAT(pair().states, testing::Not(testing::Contains(IBV_QPS_RTR)));
    drop();
  }
}

// Members that know the address have connected to it, and a queue pair serves one registration. So
// all set up again, and the leader draws another address.
TEST_F(GroupOverFake, IsSetUpAgainWithAnotherAddressIfItsOwnIsInUse) {
  mcast_context_destroy(context_);
  mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
  params.mcst_pool = "198.18.0.0/30";  // two addresses
  ASSERT_EQ(mcast_context_create(&params, &context_), MCAST_OK) << mcast_last_error();
  make(MCAST_LANE_BULK);
  lead();
  const wire::McstId refused = registered().header.mcst_id;
  sent();
  reject(MrpReject::kIdInUse);
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_ID_IN_USE);
  EXPECT_THAT(sent(), ElementsAre("unregister", "give up 10.0.0.2 10.0.0.3"));
  drop();
  device_.sent();
  make(MCAST_LANE_BULK);
  become_active_leader();
  EXPECT_NE(registered().header.mcst_id, refused) << "it rests";
}

TEST_F(GroupOverFake, OfAMemberEndsAsItsLeadersIfTheAddressIsInUse) {
  make(MCAST_LANE_BULK);
  inject(MrpType::kRegister);
  sent();
  inject(MrpType::kUnregister, static_cast<std::uint16_t>(MrpReject::kIdInUse));
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_ID_IN_USE) << "so that it sets up again, too";
}

TEST_F(GroupOverFake, WithoutAReceiveCallbackAnswersNobodyYet) {
  make(MCAST_LANE_EAGER, nullptr);
  inject(MrpType::kRegister);
  EXPECT_THAT(sent(), IsEmpty());
  EXPECT_EQ(mcast_group_set_recv(
                group_, [](void*, void*, size_t, std::uint32_t) { return MCAST_OK; }, nullptr),
            MCAST_OK);
  inject(MrpType::kRegister);
  EXPECT_THAT(sent(), ElementsAre("confirm register 10.0.0.1"));
}

// The owner of the callback goes, like a closed UCT interface. Data still arrives.
TEST_F(GroupOverFake, HandsDataToTheCallbackThatReplacedAnother) {
  make_active(MCAST_LANE_EAGER);
  int calls = 0;
  const auto count = [](void* arg, void*, size_t, std::uint32_t) {
    ++*static_cast<int*>(arg);
    return MCAST_OK;
  };
  ASSERT_EQ(mcast_group_set_recv(group_, count, &calls), MCAST_OK) << mcast_last_error();
  deliver("late", 1);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(received_.empty());
  EXPECT_EQ(mcast_group_set_recv(group_, nullptr, nullptr), MCAST_ERR_INVALID);
}

// A callback runs inside mcast_group_destroy(), which keeps other threads from progress.
TEST_F(GroupOverFake, TakesAReceiveCallbackInACallbackOfItsEndBeforeRegistration) {
  struct Setter : mcast_op_t {
    explicit Setter(mcast_group_h g) : mcast_op_t{end, this}, group(g) {}
    mcast_group_h group;
    mcast_status_t status = MCAST_INPROGRESS;

   private:
    static void end(mcast_op_t* op, mcast_status_t, size_t, std::uint32_t) {
      auto& self = *static_cast<Setter*>(op);
      self.status = mcast_group_set_recv(
          self.group, [](void*, void*, size_t, std::uint32_t) { return MCAST_OK; }, nullptr);
    }
  };
  make(MCAST_LANE_EAGER, nullptr);
  const mcast_group_h eager = group_;
  device_.raise(IBV_EVENT_QP_FATAL, *device_.pairs.back());
  progress();
  EXPECT_EQ(attr().state, MCAST_GROUP_FAILED);
  make(MCAST_LANE_BULK);
  Setter bulk_setter(group_), eager_setter(eager);
  ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &bulk_setter), MCAST_INPROGRESS);
  ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &eager_setter), MCAST_INPROGRESS);
  drop();
  EXPECT_EQ(bulk_setter.status, MCAST_ERR_INVALID);
  EXPECT_EQ(eager_setter.status, MCAST_OK);
  mcast_group_destroy(eager);
}

// A failed work request ends the group for all: the leader learns it, all operations get their
// callback, and later ones are refused with the reason.
TEST_F(GroupOverFake, ThatFailsAtAMemberNotifiesTheLeaderUntilItAnswers) {
  make_active(MCAST_LANE_BULK);
  Op send, receive;
  start(send, receive);
  complete_send(IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(send.status, MCAST_ERR_FABRIC);
  EXPECT_EQ(receive.status, MCAST_ERR_FABRIC) << "flushed";
  EXPECT_EQ(attr().cause, MCAST_CAUSE_WORK);
  EXPECT_THAT(sent(), ElementsAre("reject member could not bring its queue pair up 10.0.0.1"));
  EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_ERR_FABRIC);
  EXPECT_THAT(mcast_last_error(), HasSubstr(attr().reason));
  inject(MrpType::kUnregister);
  EXPECT_THAT(sent(), ElementsAre("confirm unregister 10.0.0.1"));
}

TEST_F(GroupOverFake, EndsOnTheLeadersUnregisterWithItsReason) {
  const struct {
    MrpReject why;
    mcast_status_t status;
    const char* text;
  } cases[] = {{MrpReject::kNone, MCAST_ERR_CANCELED, "unregistered the group"},
               {MrpReject::kMemberFailed, MCAST_ERR_FABRIC, "since a member failed"},
               {MrpReject::kEvicted, MCAST_ERR_FABRIC, "a member was lost"},
               {MrpReject::kPathLost, MCAST_ERR_FABRIC, "take another way if there is one"},
               {MrpReject::kIncomplete, MCAST_ERR_FABRIC, "a switch has forgotten the group"},
               {MrpReject::kNotMember, MCAST_ERR_FABRIC, "a switch has forgotten the group"}};
  for (const auto& c : cases) {
    make_active(MCAST_LANE_BULK);
    inject(MrpType::kUnregister, static_cast<std::uint16_t>(c.why));
    EXPECT_EQ(mcast_group_test(group_), c.status);
    EXPECT_THAT(attr().reason, HasSubstr(c.text));
    EXPECT_EQ(attr().cause, MCAST_CAUSE_LEADER);
    drop();
  }
}

TEST_F(GroupOverFake, FailsForTheLeadersReasonIfThatHasComeBeforeTheQueuePairs) {
  make_active(MCAST_LANE_BULK);
  Op send;
  ASSERT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_INPROGRESS);
  device_.complete_send(pair(), IBV_WC_RETRY_EXC_ERR);
  inject(MrpType::kUnregister, static_cast<std::uint16_t>(MrpReject::kPathLost));
  EXPECT_EQ(attr().cause, MCAST_CAUSE_LEADER);
  EXPECT_THAT(attr().reason, HasSubstr("take another way if there is one"));
  EXPECT_THAT(sent(), ElementsAre("confirm unregister 10.0.0.1")) << "the leader knows it";
}

// The leader has ended the group because of this member, and knows the consequence alone.
TEST_F(GroupOverFake, FailsForItsOwnMistakeThoughTheLeaderHasEndedTheGroupSince) {
  make_active(MCAST_LANE_BULK);
  Op receive;
  ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &receive), MCAST_INPROGRESS);
  ibv_wc wc{};
  wc.wr_id = pair().receives.front().wr_id;
  wc.status = IBV_WC_LOC_LEN_ERR;
  pair().receives.pop_front();
  device_.complete(pair(), wc);
  inject(MrpType::kUnregister, static_cast<std::uint16_t>(MrpReject::kMemberFailed));
  EXPECT_EQ(attr().cause, MCAST_CAUSE_WORK);
  EXPECT_THAT(attr().reason, HasSubstr("longer than the buffer posted"));
}

TEST_F(GroupOverFake, LooksAtControlMessagesAndDeviceEventsInOneCallOfProgressAll) {
  make_active(MCAST_LANE_BULK);
  device_.raise(IBV_EVENT_PORT_ERR, 1);
  mcast_progress(context_);
  EXPECT_EQ(mcast_group_test(group_), MCAST_OK) << "it is not their turn";
  mcast_progress_all(context_);
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_FABRIC);
  EXPECT_EQ(mcast_progress_all(nullptr), 0u);
}

TEST_F(GroupOverFake, SharesItsPortWithVerbsOfTheApplication) {
  mcast_verbs_t verbs = MCAST_VERBS_INIT;
  ASSERT_EQ(mcast_context_verbs(context_, &verbs), MCAST_OK);
  EXPECT_EQ(verbs.port, 1);
  EXPECT_EQ(verbs.pd->context, verbs.context);
  EXPECT_EQ(verbs.stores_in_process, 1) << "it speaks as the emulated NIC";
  EXPECT_EQ(mcast_context_verbs(context_, nullptr), MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_mem_verbs(nullptr), nullptr);
}

// An emulated NIC may have the manners of a NIC that repeats late.
TEST_F(GroupOverFake, WaitsForLateRepeatsOfItsNic) {
  const auto attributes = [this] {
    open({.time_limit_ms = 2'000});
    mcast_context_attr_t attr = MCAST_CONTEXT_ATTR_INIT;
    EXPECT_EQ(mcast_context_query(context_, &attr), MCAST_OK);
    return attr;
  };
  EXPECT_EQ(attributes().progress_timeout_ms, 2'000u);
  device_.latest_repeat = 4'295'000;
  EXPECT_EQ(attributes().progress_timeout_ms, 4'795u);
  EXPECT_THAT(attributes().contradiction, HasSubstr("progress_timeout_ms 2000 becomes 4795"));
}

// A caller that forgets the size would have its stack overwritten by a newer library.
TEST_F(GroupOverFake, FillsNoStructureWithoutASize) {
  make(MCAST_LANE_BULK);
  mcast_context_attr_t context = MCAST_CONTEXT_ATTR_INIT;
  mcast_group_attr_t group = MCAST_GROUP_ATTR_INIT;
  mcast_verbs_t verbs = MCAST_VERBS_INIT;
  EXPECT_EQ(mcast_context_query(context_, &context), MCAST_OK);
  EXPECT_EQ(context.struct_size, sizeof context);
  context.struct_size = group.struct_size = verbs.struct_size = 8;
  EXPECT_EQ(mcast_context_query(context_, &context), MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_group_query(group_, &group), MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_context_verbs(context_, &verbs), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("_INIT macro"));
  EXPECT_EQ(verbs.pd, nullptr);
}

TEST_F(GroupOverFake, DeviceEventsEndWhatTheyAreAbout) {
  make_active(MCAST_LANE_BULK);
  device_.raise(IBV_EVENT_PORT_ERR, 2);
  progress();
  EXPECT_EQ(mcast_group_test(group_), MCAST_OK) << "of another port";
  mcast_group_h other = nullptr;
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_BULK;
  ASSERT_EQ(mcast_group_create(context_, &params, &other), MCAST_OK);
  device_.raise(IBV_EVENT_QP_FATAL, *device_.pairs.back());
  progress();
  EXPECT_EQ(mcast_group_test(group_), MCAST_OK) << "of another queue pair";
  EXPECT_EQ(mcast_group_test(other), MCAST_ERR_FABRIC);
  device_.raise(IBV_EVENT_PORT_ERR, 1);
  progress();
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_FABRIC);
  EXPECT_THAT(attr().reason, HasSubstr("the device reports"));
  EXPECT_EQ(attr().cause, MCAST_CAUSE_DEVICE);
}

// The callback of a group that is being destroyed may look at it.
TEST_F(GroupOverFake, MayBeQueriedWhileItsDestructionCancelsWork) {
  struct Looking : mcast_op_t {
    explicit Looking(mcast_group_h of) : mcast_op_t{end, this}, group(of) {}
    static void end(mcast_op_t* op, mcast_status_t, size_t, std::uint32_t) {
      auto& self = *static_cast<Looking*>(op);
      self.query = mcast_group_query(self.group, &self.attr);
    }
    mcast_group_h group;
    mcast_status_t query = MCAST_INPROGRESS;
    mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
  };
  make_active(MCAST_LANE_BULK);
  Looking receive(group_);
  std::array<std::uint8_t, 64> memory{};
  ASSERT_EQ(mcast_recv(group_, memory.data(), memory.size(), nullptr, &receive), MCAST_INPROGRESS);
  drop();
  EXPECT_EQ(receive.query, MCAST_OK);
}

// As a callback that posts the next receive however the last one ended.
TEST_F(GroupOverFake, RefusesWorkThatACallbackPostsWhileItIsDestroyed) {
  struct Again : mcast_op_t {
    explicit Again(mcast_group_h of) : mcast_op_t{end, this}, group(of) {}
    static void end(mcast_op_t* op, mcast_status_t, size_t, std::uint32_t) {
      auto& self = *static_cast<Again*>(op);
      const mcast_member_t none{};
      self.receive = mcast_recv(self.group, self.memory, sizeof self.memory, nullptr, &self.next);
      self.send = mcast_send(self.group, self.memory, sizeof self.memory, nullptr, 0, &self.next);
      self.lead = mcast_group_lead(self.group, &none, 1);
      self.test = mcast_group_test(self.group);
    }
    mcast_group_h group;
    char memory[8] = {};
    Op next;
    mcast_status_t receive = MCAST_OK, send = MCAST_OK, lead = MCAST_OK, test = MCAST_OK;
  };
  for (const bool is_active : {true, false}) {
    make(MCAST_LANE_BULK);
    if (is_active) become_active();
    Again work(group_);
    ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &work), MCAST_INPROGRESS);
    drop();
    EXPECT_EQ(work.receive, MCAST_ERR_CANCELED);
    EXPECT_EQ(work.send, MCAST_ERR_CANCELED);
    EXPECT_EQ(work.lead, MCAST_ERR_CANCELED);
    EXPECT_EQ(work.test, MCAST_ERR_CANCELED);
    EXPECT_EQ(work.next.calls, 0);
  }
  EXPECT_THAT(sent(), IsEmpty()) << "a member that leaves is not one that failed";
}

TEST_F(GroupOverFake, ThatIsDestroyedCancelsWhatIsOutstandingAndIgnoresWhatComesLate) {
  make_active(MCAST_LANE_BULK);
  Op send, receive;
  start(send, receive);
  ibv_wc late{};
  late.wr_id = pair().sends.front().wr_id;
  device_.complete(pair(), late);  // on the queue, not yet read
  drop();
  EXPECT_EQ(send.status, MCAST_ERR_CANCELED);
  EXPECT_EQ(receive.status, MCAST_ERR_CANCELED);
  EXPECT_EQ(device_.pairs.back(), nullptr);
  progress();
  EXPECT_EQ(send.calls, 1);
  EXPECT_EQ(device_.regions, 0u);
}

TEST_F(GroupOverFake, ALeaderThatDestroysItsGroupUnregistersIt) {
  make(MCAST_LANE_BULK);
  become_active_leader();
  drop();
  EXPECT_THAT(sent(), ElementsAre("unregister"));
}

// The first message may be lost, and the program makes no further call.
TEST_F(GroupOverFake, ALeaderThatIsElsewhereRepeatsUnregister) {
  make(MCAST_LANE_BULK);
  become_active_leader();
  drop();
  unsigned sent = 0;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (sent < 2 && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
    for (const wire::MrpMessage& m : device_.sent()) sent += m.header.type == MrpType::kUnregister;
  }
  EXPECT_GE(sent, 2u);
}

}  // namespace
}  // namespace cepheus::mcast
