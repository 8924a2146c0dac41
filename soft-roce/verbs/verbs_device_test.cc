// One process, a plain verbs program: the device, what it refuses, its life with its fabric and
// with fork().
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "soft-roce/verbs/test_endpoint.h"

namespace cepheus::rnic {
namespace {

using ::testing::HasSubstr;

class OneHost : public ::testing::Test {
 protected:
  SwitchProcess fabric_{2};
};

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
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(OneHost, AForkedChildHasNoDeviceAndLeavesTheParentsAlone) {
  Endpoint e;
  const pid_t child = ::fork();
  if (child == 0) {
    ibv_wc wc{};
    bool dead = ibv_poll_cq(e.cq, 1, &wc) < 0 && errno == ENODEV;
    dead = dead && e.post_send(1, 0, 1) == ENODEV && e.post_recv(1, 0, 1) == ENODEV;
    dead = dead && ibv_alloc_pd(e.context) == nullptr && errno == ENODEV;
    ibv_port_attr port{};
    dead = dead && ibv_query_port(e.context, 1, &port) == ENODEV;
    // Cleaning up must work, and touch nothing of the parent's.
    dead = dead && ibv_destroy_qp(e.qp) == 0 && ibv_destroy_cq(e.cq) == 0;
    be_host("h1");
    ibv_context* own = open_device();
    ibv_gid gid{};
    dead = dead && ibv_query_gid(own, 1, 0, &gid) == 0 && gid.raw[15] == 2;
    ::_exit(dead ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(e.context, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
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
  const auto wc = e.wait();
  ASSERT_TRUE(wc) << "work hangs without a fabric";
  EXPECT_EQ(wc->status, IBV_WC_RETRY_EXC_ERR) << ibv_wc_status_str(wc->status);
}

TEST_F(OneHost, RefusesWhatItDoesNotDo) {
  Endpoint e;
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = e.cq;
  init.cap = {1, 1, 1, 1, 0};
  for (const ibv_qp_type type : {IBV_QPT_UD, IBV_QPT_UC, IBV_QPT_RAW_PACKET}) {
    init.qp_type = type;
    errno = 0;
    EXPECT_EQ(ibv_create_qp(e.pd, &init), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = 1u << 30;
  EXPECT_EQ(ibv_create_qp(e.pd, &init), nullptr);
  EXPECT_EQ(errno, EINVAL);

  ibv_srq_init_attr srq{};
  EXPECT_EQ(ibv_create_srq(e.pd, &srq), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_alloc_mw(e.pd, IBV_MW_TYPE_1), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_ece ece{};
  EXPECT_EQ(ibv_query_ece(e.qp, &ece), EOPNOTSUPP);
  EXPECT_EQ(ibv_set_ece(e.qp, &ece), EOPNOTSUPP);
  EXPECT_EQ(ibv_resize_cq(e.cq, 100), EOPNOTSUPP);
  EXPECT_EQ(e.post_send(1, 0, 8, [](ibv_send_wr& wr) { wr.opcode = IBV_WR_RDMA_READ; }),
            EOPNOTSUPP);
  EXPECT_NE(e.post_send(1, 0, 8), 0) << "in INIT nothing can be sent";
  ibv_ah_attr ah{};
  EXPECT_EQ(ibv_create_ah(e.pd, &ah), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(OneHost, ChecksMemoryBeforeItRegistersIt) {
  Endpoint e;
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const gap =
      ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::munmap(static_cast<char*>(gap) + page, page);
  EXPECT_EQ(ibv_reg_mr(e.pd, gap, 3 * page, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(ibv_reg_mr(e.pd, e.memory.data(), 64, IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_reg_mr(e.pd, e.memory.data(), 64, IBV_ACCESS_ON_DEMAND), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  // Optional bits may be ignored: that is what makes them optional.
  ibv_mr* mr =
      ibv_reg_mr(e.pd, e.memory.data(), 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(e.pd), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  ::munmap(gap, page);
  ::munmap(static_cast<char*>(gap) + 2 * page, page);
}

TEST_F(OneHost, ObjectsInUseAreNotDestroyed) {
  Endpoint e({.with_channel = true});
  EXPECT_EQ(ibv_destroy_cq(e.cq), EBUSY);
  EXPECT_EQ(ibv_destroy_comp_channel(e.channel), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(e.pd), EBUSY);
}

TEST_F(OneHost, ErrorFlushesBothQueuesInOrder) {
  Endpoint e;
  for (std::uint64_t id : {1, 2, 3}) ASSERT_EQ(e.post_recv(id, 0, 8), 0);
  ASSERT_EQ(e.modify_to_error(), 0);
  for (std::uint64_t id : {1, 2, 3}) {
    const auto wc = e.wait();
    ASSERT_TRUE(wc);
    EXPECT_EQ(wc->wr_id, id);
    EXPECT_EQ(wc->status, IBV_WC_WR_FLUSH_ERR);
  }
  ASSERT_EQ(e.post_send(4, 0, 8), 0);
  const auto wc = e.wait();
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(OneHost, AQueueThatOverrunsSaysSoOnce) {
  Endpoint e({.cqe = 2});
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(e.post_recv(id, 0, 8), 0);
  ASSERT_EQ(e.modify_to_error(), 0);
  EXPECT_EQ(e.wait_async(), IBV_EVENT_CQ_ERR);
  EXPECT_EQ(nic_counter("completions_lost"), 2u);
}

TEST_F(OneHost, QueryQpTellsWhatModifyWasTold) {
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
  EXPECT_EQ(a.max_rd_atomic, 1);
  EXPECT_GE(a.cap.max_send_wr, 16u);
  EXPECT_EQ(init.send_cq, e.cq);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
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
}  // namespace cepheus::rnic
