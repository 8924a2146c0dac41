// One process, a plain verbs program: the device, its refusals, its life with its fabric.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "nic-emulator/verbs/device/own_manners.h"
#include "nic-emulator/verbs/test_endpoint.h"

namespace cepheus::verbs {
namespace {

using ::testing::HasSubstr;

using OneHost = TwoHosts;

TEST(NoFabric, ThatIsConfiguredLeavesOnlyRealDevices) {
  ::unsetenv("CEPHEUS_FABRIC");
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i) EXPECT_STRNE(ibv_get_device_name(list[i]), "cepheus0");
  if (list != nullptr) ibv_free_device_list(list);
}

TEST(NoFabric, ThatCanBeReachedIsAnEmptyListWithAReason) {
  ::setenv("CEPHEUS_FABRIC", "/nowhere/fabric", 1);
  int count = -1;
  ibv_device** list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(list[0], nullptr);
  ibv_free_device_list(list);
  EXPECT_THAT(last_error(), HasSubstr("/nowhere/fabric: no such socket; start cepheus-switch"));
}

TEST_F(OneHost, IsFirstInTheListAndKnowsItsAddress) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ASSERT_GE(count, 1);
  EXPECT_STREQ(ibv_get_device_name(list[0]), "cepheus0");
  EXPECT_STREQ(list[0]->dev_name, "uverbs_cepheus0");
  const auto guid = ibv_get_device_guid(list[0]);
  EXPECT_NE(guid, 0u);
  ibv_context* context = ibv_open_device(list[0]);
  ASSERT_NE(context, nullptr);
  ibv_device_attr attributes{};
  ASSERT_EQ(ibv_query_device(context, &attributes), 0);
  EXPECT_EQ(attributes.node_guid, guid);
  ibv_gid_entry entry{};
  ASSERT_EQ(ibv_query_gid_ex(context, 1, 0, &entry, 0), 0);
  EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
  EXPECT_EQ(entry.gid.raw[15], 1);
  EXPECT_NE(ibv_query_gid_ex(context, 1, 1, &entry, 0), 0);
  ibv_gid_entry table[4];
  EXPECT_EQ(ibv_query_gid_table(context, table, 4, 0), 1);
  ibv_free_device_list(list);
  EXPECT_EQ(ibv_close_device(context), 0);
}

TEST_F(OneHost, ReportsHowManyPacketsAQueuePairHasUnderWay) {
  auto* const window = reinterpret_cast<decltype(&cepheus_roce_window)>(
      ::dlsym(RTLD_DEFAULT, "cepheus_roce_window"));
  ASSERT_NE(window, nullptr);
  EXPECT_EQ(window(Endpoint().context), 512);
  ::setenv("CEPHEUS_NIC_PROFILE", "connectx", 1);
  EXPECT_EQ(window(Endpoint().context), 1 << 22) << "no limit but that of PSNs";
  ::unsetenv("CEPHEUS_NIC_PROFILE");
}

TEST_F(OneHost, ContextsShareOneNicAndReopeningFindsTheSameHost) {
  ::unsetenv("CEPHEUS_HOST");
  const auto address = [](ibv_context* context) {
    ibv_gid gid{};
    EXPECT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);
    return gid.raw[15];
  };
  ibv_context* first = open_device();
  ibv_context* second = open_device();
  const auto mine = address(first);
  EXPECT_EQ(address(second), mine);
  EXPECT_EQ(ibv_close_device(first), 0);
  EXPECT_EQ(address(second), mine);
  EXPECT_EQ(ibv_close_device(second), 0);
  for (int i = 0; i < 20; ++i) {
    ibv_context* again = open_device();
    EXPECT_EQ(address(again), mine);
    EXPECT_EQ(ibv_close_device(again), 0);
  }
}

TEST_F(OneHost, ThatAnotherProcessHoldsIsRefusedByName) {
  Endpoint mine;
  const pid_t child = ::fork();
  if (child == 0) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    errno = 0;
    const bool refused = count > 0 && ibv_open_device(list[0]) == nullptr && errno == EBUSY;
    const bool named = last_error().find("h0 is held by pid") != std::string::npos;
    ::_exit(refused && named ? 0 : 1);
  }
  EXPECT_TRUE(ended_well(child));
}

constexpr std::size_t kPage = 4096;
ibv_context* the_context = nullptr;
void* the_page = nullptr;

void close_device(int) {
  ::mprotect(the_page, kPage, PROT_READ | PROT_WRITE);
  ibv_close_device(the_context);
}

// The write to the page faults, and the handler closes the device as another thread might.
[[noreturn]] void close_while_counters_are_written() {
  SwitchProcess fabric(1);
  the_context = open_device();
  {
    Endpoint e;  // some counters are not 0
    e.connect(e.name());
    e.post_recv(1, 0, 8);
    e.post_send(2, 8, 8);
  }
  the_page = ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::signal(SIGSEGV, close_device);
  using Counters = std::size_t(char*, std::size_t);
  auto* const counters =
      reinterpret_cast<Counters*>(::dlsym(RTLD_DEFAULT, "cepheus_roce_counters"));
  const bool has_some = counters(static_cast<char*>(the_page), kPage) > 0;
  fabric.kill();
  ::_exit(has_some ? 0 : 1);
}

// In a process of its own, because CEPHEUS_VERBOSE is read once.
TEST(OneHostDeathTest, PrintsItsCountersThoughItIsClosedWhileTheProgramReadsThem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ::setenv("CEPHEUS_VERBOSE", "1", 1);
  EXPECT_EXIT(close_while_counters_are_written(), ::testing::ExitedWithCode(0), "counters of h0:");
  ::unsetenv("CEPHEUS_VERBOSE");
}

TEST_F(OneHost, AFabricThatDiesIsAPortErrorAndEndsWork) {
  Endpoint e;
  Endpoint::Name peer = e.name();
  peer.gid.raw[15] = 2;
  e.connect(peer, 1);
  fabric_.kill();
  EXPECT_EQ(e.wait_async(), IBV_EVENT_PORT_ERR);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(e.context, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_DOWN);
  ASSERT_EQ(e.post_send(1, 0, 64), 0);
  expect_status(e.wait(), IBV_WC_RETRY_EXC_ERR);
}

// A program may keep objects of the old one.
TEST_F(OneHost, FindsARestartedFabricThoughAnOldContextIsOpen) {
  Endpoint old;
  fabric_.kill();
  EXPECT_EQ(old.wait_async(), IBV_EVENT_PORT_ERR);
  const SwitchProcess again(2);
  const auto state = [](const Endpoint& e) {
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(e.context, 1, &port), 0);
    return port.state;
  };
  Endpoint e;
  ASSERT_EQ(state(e), IBV_PORT_ACTIVE);
  EXPECT_EQ(state(old), IBV_PORT_DOWN);
  EXPECT_EQ(e.name().gid.raw[15], old.name().gid.raw[15]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    ibv_wc wc{};
    bool ended = ibv_poll_cq(e.cq, 1, &wc) < 0 && ibv_poll_cq(old.cq, 1, &wc) < 0;
    ended = ended && ibv_destroy_qp(e.qp) == 0 && ibv_destroy_qp(old.qp) == 0;
    ::_exit(ended ? 0 : 1);
  }
  EXPECT_TRUE(ended_well(child));
  EXPECT_EQ(state(e), IBV_PORT_ACTIVE);
}

TEST_F(OneHost, RefusesMissingFeatures) {
  Endpoint e;
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = e.cq;
  init.cap = {1, 1, 1, 1, 0};
  for (const ibv_qp_type type : {IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_DRIVER}) {
    init.qp_type = type;
    errno = 0;
    EXPECT_EQ(ibv_create_qp(e.pd, &init), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = 1u << 30;
  EXPECT_EQ(ibv_create_qp(e.pd, &init), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(e.post_send(1, 0, 8, [](ibv_send_wr& wr) { wr.opcode = IBV_WR_LOCAL_INV; }),
            EOPNOTSUPP);
  EXPECT_NE(e.post_send(1, 0, 8), 0) << "in INIT nothing can be sent";
  ibv_ah_attr ah{};
  EXPECT_EQ(ibv_create_ah(e.pd, &ah), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// The same as libibverbs for a device with a provider that lacks them: an error, never a crash.
TEST_F(OneHost, MissingObjectsAreNotSupported) {
  Endpoint e;
  const auto refused = [](auto* object) { return object == nullptr && errno == EOPNOTSUPP; };
  EXPECT_TRUE(refused(ibv_alloc_mw(e.pd, IBV_MW_TYPE_1)));
  EXPECT_TRUE(refused(ibv_alloc_mw(e.pd, IBV_MW_TYPE_2)));
  ibv_xrcd_init_attr xrcd{};
  EXPECT_TRUE(refused(ibv_open_xrcd(e.context, &xrcd)));
  ibv_qp_open_attr open_qp{};
  EXPECT_TRUE(refused(ibv_open_qp(e.context, &open_qp)));
  ibv_flow_attr flow{};
  EXPECT_TRUE(refused(ibv_create_flow(e.qp, &flow)));
  ibv_flow_action_esp_attr esp{};
  EXPECT_TRUE(refused(ibv_create_flow_action_esp(e.context, &esp)));
  ibv_alloc_dm_attr dm{};
  EXPECT_TRUE(refused(ibv_alloc_dm(e.context, &dm)));
  EXPECT_TRUE(refused(ibv_alloc_null_mr(e.pd)));
  ibv_td_init_attr td{};
  EXPECT_TRUE(refused(ibv_alloc_td(e.context, &td)));
  ibv_parent_domain_init_attr parent{};
  EXPECT_TRUE(refused(ibv_alloc_parent_domain(e.context, &parent)));
  ibv_wq_init_attr wq{};
  EXPECT_TRUE(refused(ibv_create_wq(e.context, &wq)));
  ibv_rwq_ind_table_init_attr table{};
  EXPECT_TRUE(refused(ibv_create_rwq_ind_table(e.context, &table)));
  ibv_counters_init_attr counters{};
  EXPECT_TRUE(refused(ibv_create_counters(e.context, &counters)));
  EXPECT_TRUE(refused(ibv_reg_dmabuf_mr(e.pd, 0, 4096, 0, 0, 0)));
  EXPECT_TRUE(refused(ibv_import_pd(e.context, 0)));
  EXPECT_TRUE(refused(ibv_import_mr(e.pd, 0)));

  ibv_cq_init_attr_ex stamped{};
  stamped.cqe = 1;
  stamped.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  EXPECT_TRUE(refused(ibv_create_cq_ex(e.context, &stamped)));

  ibv_ece ece{};
  EXPECT_EQ(ibv_query_ece(e.qp, &ece), EOPNOTSUPP);
  EXPECT_EQ(ibv_set_ece(e.qp, &ece), EOPNOTSUPP);
  ibv_gid group{};
  EXPECT_EQ(ibv_attach_mcast(e.qp, &group, 0), EOPNOTSUPP);
  EXPECT_EQ(ibv_detach_mcast(e.qp, &group, 0), EOPNOTSUPP);
  ibv_modify_cq_attr moderation{};
  EXPECT_EQ(ibv_modify_cq(e.cq, &moderation), EOPNOTSUPP);
  ibv_qp_rate_limit_attr rate{};
  EXPECT_EQ(ibv_modify_qp_rate_limit(e.qp, &rate), EOPNOTSUPP);
  ibv_values_ex values{};
  EXPECT_EQ(ibv_query_rt_values_ex(e.context, &values), EOPNOTSUPP);
  ibv_sge sge = e.sge(0, 64);
  EXPECT_EQ(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
}

TEST_F(OneHost, ConnectsToItself) {
  constexpr std::size_t kSize = 400'000;
  Endpoint e;
  ibv_qp* const other = e.create_qp();
  ASSERT_NE(other, nullptr);
  Endpoint::Name name = e.name();
  e.connect(other, name, 7, 7);
  name.qpn = other->qp_num;
  e.connect(name);
  for (std::size_t i = 0; i < kSize; ++i) e.memory[i] = static_cast<std::uint8_t>(i * 11);
  ASSERT_EQ(e.post_recv(1, kSize, kSize, other), 0);
  ASSERT_EQ(e.post_send(2, 0, kSize), 0);
  for (int i = 0; i < 2; ++i) {
    expect_status(e.wait(), IBV_WC_SUCCESS);
  }
  EXPECT_TRUE(std::equal(e.memory.begin(), e.memory.begin() + kSize, e.memory.begin() + kSize));
  EXPECT_EQ(ibv_destroy_qp(other), 0);
}

TEST_F(OneHost, QueryQpReturnsTheModifiedAttributes) {
  Endpoint e;
  Endpoint::Name peer = e.name();
  peer.gid.raw[15] = 2;
  peer.psn = 0x123456;
  e.connect(peer, 5, 3);
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(e.qp, &a, 0, &init), 0);
  EXPECT_EQ(a.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(a.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(a.rq_psn, 0x123456u);
  EXPECT_EQ(a.sq_psn, 0xFFFFFEu);
  EXPECT_EQ(a.dest_qp_num, peer.qpn);
  EXPECT_EQ(a.ah_attr.grh.dgid.raw[15], 2);
  EXPECT_EQ(a.retry_cnt, 5);
  EXPECT_EQ(a.rnr_retry, 3);
  EXPECT_EQ(a.timeout, 14);
  EXPECT_EQ(a.max_rd_atomic, 4);
  EXPECT_GE(a.cap.max_send_wr, 16u);
  EXPECT_EQ(init.send_cq, e.cq);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
}

// UCX expects the state that it has set itself, and reads it after a peer's failure.
TEST_F(OneHost, QueryQpChangesTheStateInTheObjectOnlyIfTheStateIsRequested) {
  Endpoint e;
  e.connect(e.name());
  ASSERT_EQ(e.qp->state, IBV_QPS_RTS);
  const auto with_a_bad_key = [](ibv_send_wr& wr) { wr.sg_list->lkey = 0; };
  ASSERT_EQ(e.post_send(1, 0, 4096, with_a_bad_key), 0);
  expect_status(e.wait(), IBV_WC_LOC_PROT_ERR);
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(e.qp, &a, IBV_QP_AV | IBV_QP_CAP, &init), 0);
  EXPECT_EQ(a.qp_state, IBV_QPS_ERR);
  EXPECT_EQ(e.qp->state, IBV_QPS_RTS);
  ASSERT_EQ(ibv_query_qp(e.qp, &a, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(e.qp->state, IBV_QPS_ERR);
}

TEST_F(OneHost, ItsFilesAnswerAsTheKernelsWould) {
  struct stat status {};
  ASSERT_EQ(::stat("/dev/infiniband/uverbs_cepheus0", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(::access("/dev/infiniband/uverbs_cepheus0", R_OK | W_OK), 0);
  const char* type = "/sys/class/infiniband/cepheus0/ports/1/gid_attrs/types/0";
  FILE* file = std::fopen(type, "r");
  ASSERT_NE(file, nullptr);
  char line[32] = {};
  EXPECT_NE(std::fgets(line, sizeof line, file), nullptr);
  EXPECT_STREQ(line, "RoCE v2\n");
  std::fclose(file);
  EXPECT_EQ(::open(type, O_RDWR), -1);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(::access("/sys/class/infiniband/cepheus0/ports/1/gid_attrs/types/1", F_OK), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(::stat("/etc/passwd", &status), 0);
  EXPECT_TRUE(S_ISREG(status.st_mode));
}

}  // namespace
}  // namespace cepheus::verbs
