// rc_mcast through UCT's public API, as UCX loads it.
#include <unistd.h>

#include "ucx-transport/transport_fixture.h"
#include "ucx-transport/uct_layout.h"

namespace cepheus::uct {
namespace {

// In a process of its own, because a library that is loaded again may not start again.
TEST(TransportDeathTest, RefusesEveryOtherMinorVersionOfUcx) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto registered_under = [](unsigned major, unsigned minor) {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // UCX's log
    ucx_major = major;
    ucx_minor = minor;
    void* const library = dlopen(RC_MCAST, RTLD_NOW);
    const auto is_registered =
        reinterpret_cast<int (*)()>(dlsym(library, "cepheus_uct_rc_mcast_registered"));
    fflush(stdout);
    return is_registered() != 0;
  };
  const auto registers = testing::ExitedWithCode(0), refuses = testing::ExitedWithCode(1);
  EXPECT_EXIT(_exit(registered_under(1, UCT_VERNO_MINOR) ? 0 : 1), registers, "");
  EXPECT_EXIT(_exit(registered_under(1, UCT_VERNO_MINOR - 1) ? 0 : 1), refuses,
              "this is UCX 1\\.1[27]\\.0; build Cepheus on a host with UCX 1\\.13 or 1\\.18");
  EXPECT_EXIT(_exit(registered_under(1, UCT_VERNO_MINOR + 1) ? 0 : 1), refuses, "");
  EXPECT_EXIT(_exit(registered_under(2, UCT_VERNO_MINOR) ? 0 : 1), refuses, "");
}

TEST_F(RcMcast, ShowsADeviceOnlyToThoseWhoNameOne) {
  ASSERT_NE(Ucx::instance().component, nullptr) << "component mcast did not register";
  for (const char* device : {"", "fake0"}) {
    uct_md_h md = Ucx::instance().open(device);
    uct_tl_resource_desc_t* resources = nullptr;
    unsigned count = 0;
    ASSERT_EQ(uct_md_query_tl_resources(md, &resources, &count), UCS_OK);
    ASSERT_EQ(count, *device == '\0' ? 0u : 1u);
    if (count == 1) {
      EXPECT_STREQ(resources[0].tl_name, "rc_mcast");
      EXPECT_STREQ(resources[0].dev_name, device);
    }
    uct_release_tl_resource_list(resources);
    uct_md_close(md);
  }
}

TEST_F(RcMcast, MakesAMemberByItsVariables) {
  ASSERT_EQ(open({{"LANE", "bulk"},
                  {"MAX_EAGER", "4k"},
                  {"RECV_DEPTH", "5"},
                  {"SEND_DEPTH", "6"},
                  {"LOST_MEMBER", "end-group"},
                  {"KEY_FILE", "/key"},
                  {"REGISTER_TIMEOUT", "2s"},
                  {"PROGRESS_TIMEOUT", "70ms"}}),
            UCS_OK);
  EXPECT_TRUE(lib.exists);
  EXPECT_EQ(lib.params.lane, MCAST_LANE_BULK);
  EXPECT_EQ(lib.params.max_eager, 4096u);
  EXPECT_EQ(lib.params.recv_depth, 5u);
  EXPECT_EQ(lib.params.send_depth, 6u);
  EXPECT_EQ(lib.params.lost_member, MCAST_LOST_MEMBER_ENDS_GROUP);
  ASSERT_EQ(lib.contexts.size(), 1u);
  const Context& context = lib.contexts.front();
  EXPECT_EQ(context.device, "fake0");
  EXPECT_EQ(context.key_file, "/key");
  EXPECT_EQ(context.params.register_timeout_ms, 2000u);
  EXPECT_EQ(context.params.progress_timeout_ms, 70u);
  EXPECT_EQ(Ucx::instance().group_of(iface_), kGroup);
  close();
  EXPECT_FALSE(lib.exists);
}

TEST_F(RcMcast, OpensTheNearestDeviceIfAnyWillDo) {
  uct_md_close(md_);
  md_ = Ucx::instance().open("any");
  ASSERT_EQ(open(), UCS_OK);
  EXPECT_EQ(lib.contexts.front().device, "");
}

TEST_F(RcMcast, SharesAContextBetweenInterfacesOfEqualSettings) {
  const auto context = [&](const Variables& variables) {
    uct_iface_config_t* const own = config(variables);
    mcast_context_h out = nullptr;
    EXPECT_EQ(Ucx::instance().context_of(md_, Ucx::instance().worker, own, &out), MCAST_OK);
    uct_config_release(own);
    return out;
  };
  const mcast_context_h first = context({});
  ASSERT_EQ(open({{"LANE", "bulk"}}), UCS_OK);
  EXPECT_EQ(context({{"LANE", "bulk"}}), first) << "the lane is the group's";
  EXPECT_EQ(lib.contexts.size(), 1u);
  EXPECT_NE(context({{"REGISTER_TIMEOUT", "3s"}}), first);
  EXPECT_EQ(lib.contexts.size(), 2u);
  close();
  uct_md_close(md_);
  EXPECT_EQ(lib.contexts.size(), 0u);
  md_ = Ucx::instance().open("fake0");
}

TEST_F(RcMcast, HasTimesThatUsersCanWrite) {
  ASSERT_EQ(open({{"REGISTER_TIMEOUT", "inf"}, {"PROGRESS_TIMEOUT", "10us"}}), UCS_OK);
  EXPECT_EQ(lib.contexts.back().params.register_timeout_ms, 0xFFFFFFFF);
  EXPECT_EQ(lib.contexts.back().params.progress_timeout_ms, 1u) << "0 is the default";
}

TEST_F(RcMcast, RefusesPortsThatUdpLacks) {
  EXPECT_EQ(open({{"MRP_PORT", "70000"}}), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(lib.contexts.size(), 0u);
}

TEST_F(RcMcast, HasTheReceivesThatItsVariableNames) {
  ASSERT_EQ(open({{"LANE", "bulk"}, {"RECV_DEPTH", "16"}}), UCS_OK);
  uct_iface_attr_t attr;
  ASSERT_EQ(uct_iface_query(iface_, &attr), UCS_OK);
  EXPECT_EQ(attr.cap.tag.recv.max_outstanding, 16u);
}

TEST_F(RcMcast, OpensNoInterfaceWithoutADevice) {
  lib.opening = MCAST_ERR_NO_DEVICE;
  EXPECT_EQ(open(), UCS_ERR_NO_DEVICE);
  lib.opening = MCAST_OK;
  lib.creation = MCAST_ERR_NO_MEMORY;
  EXPECT_EQ(open(), UCS_ERR_NO_MEMORY);
  EXPECT_FALSE(lib.exists);
}

TEST_F(RcMcast, TheFirstOfTheListLeads) {
  ASSERT_EQ(open(), UCS_OK);
  ASSERT_EQ(connect(list({kMember.qpn, 18, 19}), &ep_), UCS_OK);
  EXPECT_THAT(lib.led, ElementsAre(kMember.qpn, 18u, 19u));
}

// A receive callback before would make the member take part in a registration, and messages would
// arrive before the program expects them.
TEST_F(RcMcast, OthersWaitForTheLeaderOnceTheyHaveAnEndpoint) {
  ASSERT_EQ(open(), UCS_OK);
  EXPECT_EQ(lib.recv_cb, nullptr);
  ASSERT_EQ(connect(list({18, kMember.qpn, 19}), &ep_), UCS_OK);
  EXPECT_NE(lib.recv_cb, nullptr);
  EXPECT_THAT(lib.led, IsEmpty());
}

TEST_F(RcMcast, AMemberThatKnowsItselfAloneWaits) {
  ASSERT_EQ(open(), UCS_OK);
  ASSERT_EQ(connect(list({kMember.qpn}), &ep_), UCS_OK);
  EXPECT_THAT(lib.led, IsEmpty());
}

TEST_F(RcMcast, HasOneEndpoint) {
  make("eager", 64);
  uct_ep_h second = nullptr;
  EXPECT_EQ(connect(list({kMember.qpn, 18}), &second), UCS_ERR_BUSY);
  uct_ep_destroy(ep_);
  ep_ = nullptr;
  EXPECT_EQ(connect(list({kMember.qpn, 18}), &second), UCS_ERR_BUSY) << "the member is gone";
}

TEST_F(RcMcast, ReportsARefusedRegistration) {
  lib.leading = MCAST_ERR_INVALID;
  ASSERT_EQ(open(), UCS_OK);
  EXPECT_EQ(connect(list({kMember.qpn, 18}), &ep_), UCS_ERR_INVALID_PARAM);
  ep_ = nullptr;
}

TEST_F(RcMcast, EndpointsWaitForTheOutcome) {
  make("eager", 64);
  lib.test = MCAST_INPROGRESS;
  Completion checked, flushed;
  EXPECT_EQ(uct_ep_check(ep_, 0, &checked), UCS_INPROGRESS);
  EXPECT_EQ(uct_ep_flush(ep_, 0, &flushed), UCS_INPROGRESS);
  EXPECT_EQ(uct_ep_am_short(ep_, 1, 0, nullptr, 0), UCS_ERR_NO_RESOURCE);
  uct_iface_progress(iface_);
  EXPECT_EQ(checked.calls + flushed.calls, 0);
  lib.test = MCAST_OK;
  uct_iface_progress(iface_);
  EXPECT_EQ(checked.calls, 1);
  EXPECT_EQ(flushed.calls, 1);
  EXPECT_EQ(flushed.status, UCS_OK);
  EXPECT_EQ(uct_ep_check(ep_, 0, nullptr), UCS_OK);
  EXPECT_EQ(uct_ep_am_short(ep_, 1, 0, nullptr, 0), UCS_OK);
}

TEST_F(RcMcast, AFailedRegistrationReachesWaitingCallers) {
  make("eager", 64);
  lib.test = MCAST_INPROGRESS;
  Completion comp;
  EXPECT_EQ(uct_ep_flush(ep_, 0, &comp), UCS_INPROGRESS);
  lib.test = MCAST_ERR_TIMED_OUT;
  uct_iface_progress(iface_);
  EXPECT_EQ(comp.calls, 1);
  EXPECT_EQ(comp.status, UCS_ERR_TIMED_OUT);
  EXPECT_EQ(uct_ep_am_short(ep_, 1, 0, nullptr, 0), UCS_ERR_TIMED_OUT);
}

TEST_F(RcMcast, ADestroyedEndpointUnregisters) {
  make("eager", 64);
  lib.outstanding = 1;
  Completion comp;
  ASSERT_EQ(uct_ep_flush(ep_, 0, &comp), UCS_INPROGRESS);
  uct_ep_destroy(ep_);
  ep_ = nullptr;
  EXPECT_FALSE(lib.exists);
  EXPECT_EQ(comp.calls, 1);
  EXPECT_EQ(comp.status, UCS_ERR_CANCELED);
  EXPECT_EQ(uct_iface_flush(iface_, 0, nullptr), UCS_OK);
  uct_iface_progress(iface_);
}

TEST_F(RcMcast, EagerLaneIsActiveMessages) {
  make("eager", 100);
  const auto cap = attr().cap;
  EXPECT_TRUE(cap.flags & UCT_IFACE_FLAG_AM_SHORT);
  EXPECT_TRUE(cap.flags & UCT_IFACE_FLAG_AM_BCOPY);
  EXPECT_FALSE(cap.flags & UCT_IFACE_FLAG_TAG_EAGER_ZCOPY);
  EXPECT_EQ(cap.am.max_bcopy, 100u);
}

TEST_F(RcMcast, BulkLaneIsTagMatching) {
  make("bulk", 1 << 20);
  const auto cap = attr().cap;
  EXPECT_FALSE(cap.flags & UCT_IFACE_FLAG_AM_SHORT);
  EXPECT_TRUE(cap.flags & UCT_IFACE_FLAG_TAG_EAGER_ZCOPY);
  EXPECT_EQ(cap.tag.eager.max_zcopy, size_t{1} << 20);
}

// UCP passes peers' addresses around, its own process's among them: none of them may look like a way.
TEST_F(RcMcast, ReachesListsWithItsMemberAndNothingElse) {
  ASSERT_EQ(open(), UCS_OK);
  rc_mcast_record_t own{};
  ASSERT_EQ(attr().iface_addr_len, sizeof own);
  ASSERT_EQ(uct_iface_get_address(iface_, reinterpret_cast<uct_iface_addr_t*>(&own)), UCS_OK);
  EXPECT_EQ(own.member.qpn, kMember.qpn);
  const auto reaches = [&](const std::string& address) {
    const bool is_way = uct_iface_is_reachable(iface_, nullptr, as_address(address)) != 0;
#if CEPHEUS_UCX_1_18  // UCP's call there
    uct_iface_is_reachable_params_t params{};
    EXPECT_EQ(uct_iface_is_reachable_v2(iface_, &params), 0);
    params.field_mask = CEPHEUS_REACHABLE_FIELD_IFACE_ADDR;
    params.iface_addr = as_address(address);
    EXPECT_EQ(uct_iface_is_reachable_v2(iface_, &params) != 0, is_way);
#endif
    return is_way;
  };
  const std::string record(reinterpret_cast<const char*>(&own), sizeof own);
  EXPECT_FALSE(reaches(record));
  EXPECT_FALSE(reaches(std::string(sizeof own, '\0')));
  EXPECT_FALSE(reaches(list({})));
  EXPECT_TRUE(reaches(list({kMember.qpn})));
  EXPECT_TRUE(reaches(list({18, kMember.qpn})));
  const std::string strangers = list({18, 19});
  EXPECT_FALSE(reaches(strangers));
  for (const std::string& address : {record, strangers}) {
    EXPECT_EQ(connect(address, &ep_), UCS_ERR_UNREACHABLE);
    ep_ = nullptr;
  }
}

TEST_F(RcMcast, SendsActiveMessagesWithTheirIdAsImmediate) {
  make("eager", 16);
  const std::uint64_t header = 0x0102030405060708;
  EXPECT_EQ(uct_ep_am_short(ep_, 5, header, "payload!", 8), UCS_OK);
  ASSERT_EQ(lib.sent.size(), 1u);
  EXPECT_EQ(lib.sent[0].imm, 5u);
  EXPECT_EQ(lib.sent[0].data, std::string(reinterpret_cast<const char*>(&header), 8) + "payload!");
  EXPECT_EQ(uct_ep_am_short(ep_, 5, header, "payload!!", 9), UCS_ERR_INVALID_PARAM);
  EXPECT_EQ(uct_ep_am_short(ep_, UCT_AM_ID_MAX, header, "", 0), UCS_ERR_INVALID_PARAM);
  const auto pack = [](void* dest, void* arg) -> size_t {
    std::memcpy(dest, arg, 4);
    return 4;
  };
  EXPECT_EQ(uct_ep_am_bcopy(ep_, 6, pack, const_cast<char*>("pack"), 0), 4);
  EXPECT_EQ(lib.sent[1].data, "pack");
  lib.send = MCAST_ERR_AGAIN;
  EXPECT_EQ(uct_ep_am_bcopy(ep_, 6, pack, const_cast<char*>("pack"), 0), UCS_ERR_NO_RESOURCE);
}

struct Handled {
  std::string data;
  void* at = nullptr;
  unsigned flags = 0;
  ucs_status_t answer = UCS_OK;
};
ucs_status_t handle(void* arg, void* data, size_t length, unsigned flags) {
  auto& handled = *static_cast<Handled*>(arg);
  handled.flags = flags;
  handled.data.assign(static_cast<char*>(data), length);
  handled.at = data;
  return handled.answer;
}

TEST_F(RcMcast, HandsArrivalsToTheHandlerOfTheirId) {
  make("eager", 64);
  Handled five, six;
  ASSERT_EQ(uct_iface_set_am_handler(iface_, 5, handle, &five, 0), UCS_OK);
  ASSERT_EQ(uct_iface_set_am_handler(iface_, 6, handle, &six, 0), UCS_OK);
  alignas(64) char memory[128] = {};
  char* const data = memory + MCAST_RECV_HEADROOM;
  std::memcpy(data, "hello", 5);
  EXPECT_EQ(lib.recv_cb(lib.recv_arg, data, 5, 6), MCAST_OK);
  EXPECT_EQ(six.data, "hello");
  EXPECT_EQ(five.at, nullptr);
  EXPECT_EQ(lib.recv_cb(lib.recv_arg, data, 5, 0xFFFF), MCAST_OK) << "nobody's";
  // A handler that keeps the buffer gives it back by UCT's descriptor.
  six.answer = UCS_INPROGRESS;
  EXPECT_EQ(lib.recv_cb(lib.recv_arg, data, 5, 6), MCAST_INPROGRESS);
  EXPECT_THAT(lib.released, IsEmpty());
  uct_iface_release_desc(six.at);
  EXPECT_THAT(lib.released, ElementsAre(static_cast<void*>(data)));
}

// UCT's headroom: the program writes to it, and gives the buffer back by its beginning.
TEST_F(RcMcast, LeavesTheHeadroomOfAKeptArrivalToTheProgram) {
  rx_headroom_ = 32;
  make("eager", 64);
  Handled handled;
  handled.answer = UCS_INPROGRESS;
  ASSERT_EQ(uct_iface_set_am_handler(iface_, 6, handle, &handled, 0), UCS_OK);
  alignas(64) char memory[128] = {};
  char* const data = memory + MCAST_RECV_HEADROOM;
  EXPECT_EQ(lib.recv_cb(lib.recv_arg, data, 5, 6), MCAST_INPROGRESS);
  EXPECT_TRUE(handled.flags & UCT_CB_PARAM_FLAG_DESC);
  std::memset(data - rx_headroom_, 0x5A, rx_headroom_);
  uct_iface_release_desc(data - rx_headroom_);
  EXPECT_THAT(lib.released, ElementsAre(static_cast<void*>(data)));
}

// UCP's workers ask for more than libmcast has, and must open.
TEST_F(RcMcast, LetsHandlersKeepNothingIfTheirHeadroomIsTooLarge) {
  for (const bool fits : {true, false}) {
    rx_headroom_ = MCAST_RECV_HEADROOM - sizeof(void*) + (fits ? 0 : 1);
    make("eager", 64);
    Handled handled;
    ASSERT_EQ(uct_iface_set_am_handler(iface_, 6, handle, &handled, 0), UCS_OK);
    alignas(64) char memory[128] = {};
    EXPECT_EQ(lib.recv_cb(lib.recv_arg, memory + MCAST_RECV_HEADROOM, 5, 6), MCAST_OK);
    EXPECT_EQ((handled.flags & UCT_CB_PARAM_FLAG_DESC) != 0, fits);
    close();
  }
}

TEST_F(RcMcast, RunsPendingRequestsInOrderOnceThereIsSpace) {
  make("eager", 64);
  struct Request : uct_pending_req_t {
    uct_ep_h ep;
    int runs = 0;
  };
  const auto run = [](uct_pending_req_t* self) -> ucs_status_t {
    auto& request = *static_cast<Request*>(self);
    ++request.runs;
    return uct_ep_am_short(request.ep, 1, 0, nullptr, 0);
  };
  Request first, second;
  first.func = second.func = run;
  first.ep = second.ep = ep_;
  lib.send = MCAST_ERR_AGAIN;
  ASSERT_EQ(uct_ep_pending_add(ep_, &first, 0), UCS_OK);
  ASSERT_EQ(uct_ep_pending_add(ep_, &second, 0), UCS_OK);
  uct_iface_progress(iface_);
  EXPECT_EQ(first.runs, 1);
  EXPECT_EQ(second.runs, 0) << "behind the first";
  lib.send = MCAST_OK;
  EXPECT_EQ(uct_iface_progress(iface_), 2u);
  EXPECT_EQ(lib.sent.size(), 2u);
  ASSERT_EQ(uct_ep_pending_add(ep_, &first, 0), UCS_OK);
  int purged = 0;
  uct_ep_pending_purge(
      ep_, [](uct_pending_req_t*, void* arg) { ++*static_cast<int*>(arg); }, &purged);
  EXPECT_EQ(purged, 1);
}

// Receives are possible without an endpoint. Their owner may be gone when the interface closes.
TEST_F(RcMcast, CompletesNothingAfterItWasClosed) {
  lib.attr.max_message = 100;
  ASSERT_EQ(open({{"LANE", "bulk"}}), UCS_OK);
  char buffer[100];
  const uct_iov_t iov{buffer, sizeof buffer, nullptr, 0, 1};
  Receive ctx;
  ASSERT_EQ(uct_iface_tag_recv_zcopy(iface_, 1, ~0ull, &iov, 1, &ctx), UCS_OK);
  close();
  EXPECT_EQ(ctx.result, UCS_INPROGRESS);
}

}  // namespace
}  // namespace cepheus::uct
