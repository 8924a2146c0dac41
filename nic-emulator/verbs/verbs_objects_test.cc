// One process, a plain verbs program: limits, memory, queues, and objects in use.
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "nic-emulator/verbs/test_endpoint.h"

namespace cepheus::verbs {
namespace {

using OneHost = TwoHosts;

TEST_F(OneHost, TheReportedLimitsAreTheRealOnes) {
  Endpoint e;
  ibv_device_attr_ex limits{};
  ASSERT_EQ(ibv_query_device_ex(e.context, nullptr, &limits), 0);
  const ibv_device_attr& device = limits.orig_attr;
  EXPECT_EQ(limits.phys_port_cnt_ex, 1u);
  EXPECT_EQ(limits.device_cap_flags_ex, device.device_cap_flags);
  EXPECT_EQ(limits.odp_caps.general_caps, 0u);
  EXPECT_EQ(limits.max_dm_size, 0u);
  EXPECT_EQ(device.max_mw, 0);
  EXPECT_EQ(device.max_mcast_grp, 0);

  const auto most = [&](int wr, int sge) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = e.cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {static_cast<std::uint32_t>(wr), static_cast<std::uint32_t>(wr),
                static_cast<std::uint32_t>(sge), static_cast<std::uint32_t>(sge), 0};
    ibv_qp* const qp = ibv_create_qp(e.pd, &init);
    return qp != nullptr && ibv_destroy_qp(qp) == 0;
  };
  EXPECT_TRUE(most(device.max_qp_wr, device.max_sge));
  EXPECT_FALSE(most(device.max_qp_wr + 1, device.max_sge));
  EXPECT_FALSE(most(device.max_qp_wr, device.max_sge + 1));
  ibv_cq* const cq = ibv_create_cq(e.context, device.max_cqe, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_GE(cq->cqe, device.max_cqe);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_create_cq(e.context, device.max_cqe + 1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(ibv_create_cq(e.context, 1, nullptr, nullptr, 1), nullptr) << "one vector only";
}

// The most objects of a kind beside one, then destroys all.
template <typename Create, typename Destroy>
int most_of(Create create, Destroy destroy) {
  std::vector<decltype(create())> made;
  while (auto* const next = create()) made.push_back(next);
  EXPECT_EQ(errno, ENOMEM);
  for (auto* const each : made) EXPECT_EQ(destroy(each), 0);
  return static_cast<int>(made.size());
}

TEST_F(OneHost, ObjectsBeyondTheReportedLimitsAreRefused) {
  Endpoint e;
  ibv_device_attr limits{};
  ASSERT_EQ(ibv_query_device(e.context, &limits), 0);
  const auto pd = [&] { return ibv_alloc_pd(e.context); };
  EXPECT_EQ(most_of(pd, ibv_dealloc_pd), limits.max_pd - 1);
  const auto cq = [&] { return ibv_create_cq(e.context, 1, nullptr, nullptr, 0); };
  EXPECT_EQ(most_of(cq, ibv_destroy_cq), limits.max_cq - 1);
  ibv_ah_attr to = Endpoint::address_of(e.name());
  EXPECT_EQ(most_of([&] { return ibv_create_ah(e.pd, &to); }, ibv_destroy_ah), limits.max_ah);
}

TEST_F(OneHost, RegistersMemoryWithTheProgramsOwnRightsOnly) {
  Endpoint e;
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory = ::mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(ibv_reg_mr(e.pd, memory, page, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  ibv_mr* const mr = ibv_reg_mr(e.pd, memory, page, IBV_ACCESS_REMOTE_READ);
  ASSERT_NE(mr, nullptr) << "it may be read";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  ASSERT_EQ(::mprotect(memory, page, PROT_NONE), 0);
  EXPECT_EQ(ibv_reg_mr(e.pd, memory, page, IBV_ACCESS_REMOTE_READ), nullptr);
  EXPECT_EQ(errno, EFAULT);
  ::munmap(memory, page);
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
  // Optional bits may be ignored.
  ibv_mr* mr =
      ibv_reg_mr(e.pd, e.memory.data(), 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(e.pd), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  ::munmap(gap, page);
  ::munmap(static_cast<char*>(gap) + 2 * page, page);
}

TEST_F(OneHost, AContextsMemoryIsNoOtherContexts) {
  Endpoint mine, others;
  mine.connect(mine.name());
  const auto with_others_memory = [&](ibv_send_wr& wr) {
    wr.sg_list->addr = reinterpret_cast<std::uintptr_t>(others.memory.data());
    wr.sg_list->lkey = others.mr->lkey;
  };
  ASSERT_EQ(mine.post_send(1, 0, 8, with_others_memory), 0);
  expect_status(mine.wait(), IBV_WC_LOC_PROT_ERR);
}

TEST_F(OneHost, ObjectsInUseAreNotDestroyed) {
  Endpoint e({.with_channel = true});
  EXPECT_EQ(ibv_destroy_cq(e.cq), EBUSY);
  EXPECT_EQ(ibv_destroy_comp_channel(e.channel), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(e.pd), EBUSY);
}

// Their numbers and wr_ids may be used again.
TEST_F(OneHost, ResetOrDestroyedQueuePairsLeaveNoCompletions) {
  Endpoint e;
  ibv_qp* const other = e.create_qp();
  ASSERT_NE(other, nullptr);
  const auto modify = [](ibv_qp* qp, ibv_qp_state state) {
    ibv_qp_attr a{};
    a.qp_state = state;
    return ibv_modify_qp(qp, &a, IBV_QP_STATE);
  };
  for (std::uint64_t id : {1, 2, 3}) ASSERT_EQ(e.post_recv(id, 0, 8, id == 2 ? other : e.qp), 0);
  ASSERT_EQ(modify(e.qp, IBV_QPS_ERR), 0);
  ASSERT_EQ(modify(other, IBV_QPS_ERR), 0);
  ASSERT_EQ(modify(e.qp, IBV_QPS_RESET), 0);
  const auto wc = e.wait();
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->wr_id, 2u);
  ASSERT_EQ(e.post_recv(4, 0, 8, other), 0);
  EXPECT_EQ(ibv_destroy_qp(other), 0);
  ibv_wc none{};
  EXPECT_EQ(ibv_poll_cq(e.cq, 1, &none), 0);
}

// As with hardware NICs: a program that posts until ENOMEM never overruns its completion queue.
TEST_F(OneHost, ASlotIsFreeOnceItsCompletionHasBeenPolled) {
  constexpr int kSlots = 4;
  Endpoint e({.send_wr = kSlots, .recv_wr = kSlots});
  e.connect(e.name());  // to itself
  const auto silent = [](ibv_send_wr& wr) { wr.send_flags = 0; };
  for (int i = 0; i < kSlots; ++i) ASSERT_EQ(e.post_recv(1, 0, 8), 0);
  for (int i = 1; i < kSlots; ++i) ASSERT_EQ(e.post_send(2, 8, 8, silent), 0);
  ASSERT_EQ(e.post_send(2, 8, 8), 0);
  for (int polled = 0; polled < kSlots + 1; ++polled) {
    const auto wc = e.wait();
    ASSERT_TRUE(wc && wc->status == IBV_WC_SUCCESS);
    const bool is_send = wc->opcode == IBV_WC_SEND;
    for (int i = 0; i < kSlots && is_send; ++i) EXPECT_EQ(e.post_send(3, 8, 8, silent), 0);
    if (!is_send) {
      EXPECT_EQ(e.post_recv(4, 0, 0), 0);
    }
    EXPECT_EQ(e.post_send(5, 8, 8), ENOMEM);
    EXPECT_EQ(e.post_recv(6, 0, 8), ENOMEM);
    if (is_send) break;
  }
}

TEST_F(OneHost, ADestroyedQueuePairFreesTheSlotsOfItsUnpolledReceives) {
  constexpr int kSlots = 4;
  Endpoint e({.recv_wr = kSlots, .shared_receives = true});
  e.connect(e.name());  // to itself
  for (int i = 0; i < kSlots; ++i) {
    ASSERT_EQ(e.post_recv(1, 0, 8), 0);
    ASSERT_EQ(e.post_send(2, 8, 8), 0);
  }
  EXPECT_EQ(e.post_recv(3, 0, 8), ENOMEM);
  ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
  e.qp = nullptr;
  for (int i = 0; i < kSlots; ++i) EXPECT_EQ(e.post_recv(4, 0, 8), 0);
}

TEST_F(OneHost, ASharedReceiveQueueIsResizedAroundItsReceives) {
  Endpoint e({.recv_wr = 2, .shared_receives = true});
  e.connect(e.name());  // to itself
  const auto resize = [&](std::uint32_t max_wr) {
    ibv_srq_attr a{.max_wr = max_wr, .max_sge = 0, .srq_limit = 0};
    return ibv_modify_srq(e.srq, &a, IBV_SRQ_MAX_WR);
  };
  for (std::uint64_t id : {1, 2}) ASSERT_EQ(e.post_recv(id, 0, 8), 0);
  EXPECT_EQ(e.post_recv(3, 0, 8), ENOMEM);
  ASSERT_EQ(resize(3), 0);
  ibv_srq_attr now{};
  ASSERT_EQ(ibv_query_srq(e.srq, &now), 0);
  EXPECT_EQ(now.max_wr, 3u);
  EXPECT_EQ(e.post_recv(3, 0, 8), 0);
  EXPECT_EQ(e.post_recv(4, 0, 8), ENOMEM);
  EXPECT_EQ(resize(2), EINVAL);
  EXPECT_EQ(resize(1u << 30), EINVAL);
  for (std::uint64_t id : {1, 2, 3}) {
    ASSERT_EQ(e.post_send(9, 8, 8), 0);
    for (int i = 0; i < 2; ++i) {
      const auto wc = e.wait();
      ASSERT_TRUE(wc && wc->status == IBV_WC_SUCCESS);
      EXPECT_EQ(wc->wr_id, wc->opcode == IBV_WC_SEND ? 9 : id);
    }
  }
}

TEST_F(OneHost, AQueueReportsItsOverrunOnce) {
  Endpoint e({.cqe = 2});
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(e.post_recv(id, 0, 8), 0);
  ASSERT_EQ(e.modify_to_error(), 0);
  EXPECT_EQ(e.wait_async(), IBV_EVENT_CQ_ERR);
  EXPECT_EQ(nic_counter("completions_lost"), 2u);
}

// Completions of receives that are posted in ERR, one each.
TEST_F(OneHost, ThreadsThatPollFieldByFieldShareAQueue) {
  constexpr std::uint64_t kMost = 60'000;
  constexpr int kEntries = 4096;
  Endpoint e({.cqe = kEntries, .recv_wr = kEntries, .extended = true});
  ASSERT_EQ(e.modify_to_error(), 0);
  ibv_cq_ex* const cq = reinterpret_cast<ibv_cq_ex*>(e.cq);
  std::atomic<std::uint64_t> polled{0};
  std::vector<std::atomic<int>> seen(kMost);
  const auto until = std::chrono::steady_clock::now() + kTimeLimit;
  const auto is_late = [&] { return std::chrono::steady_clock::now() > until; };
  const auto poll = [&] {
    ibv_poll_cq_attr none{};
    while (polled.load() < kMost && !is_late()) {
      if (ibv_start_poll(cq, &none) != 0) continue;
      do {
        if (cq->wr_id % 256 == 0) ::sched_yield();
        ++seen[cq->wr_id];
        ++polled;
      } while (ibv_next_poll(cq) == 0);
      ibv_end_poll(cq);
    }
  };
  std::thread one(poll), two(poll);
  for (std::uint64_t id = 0; id < kMost && !is_late(); ++id) {
    while (id - std::min(id, polled.load()) > kEntries / 2 && !is_late()) ::sched_yield();
    EXPECT_EQ(e.post_recv(id, 0, 8), 0);
  }
  one.join();
  two.join();
  EXPECT_EQ(polled.load(), kMost);
  EXPECT_EQ(std::ranges::count_if(seen, [](const auto& times) { return times != 1; }), 0);
}

TEST_F(OneHost, ABatchOfRequestsIsPostedAsAWholeOrNotAtAll) {
  Endpoint e({.max_inline = 64, .extended = true});
  Endpoint::Name name = e.name();
  e.connect(name);
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(e.qp);
  std::array<char, 65> long_data{};
  const auto begin = [&](std::uint64_t id) {
    qp->wr_id = id;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(qp);
  };
  ibv_wr_start(qp);
  begin(1);
  ibv_wr_set_sge(qp, e.mr->lkey, name.address, 8);
  begin(2);
  ibv_wr_set_inline_data(qp, long_data.data(), long_data.size());
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
  ASSERT_EQ(e.post_recv(7, 100, 8), 0);
  ASSERT_EQ(e.post_recv(8, 200, 8), 0);
  ibv_wr_start(qp);
  begin(3);
  ibv_wr_set_inline_data(qp, long_data.data(), 8);
  begin(4);
  ibv_wr_set_sge(qp, e.mr->lkey, name.address, 8);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 4; ++i) {
    const auto wc = e.wait();
    ASSERT_TRUE(wc);
    EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
    ids.push_back(wc->wr_id);
  }
  std::ranges::sort(ids);
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{3, 4, 7, 8}));
}

// A program built with headers with longer structures than ours.
TEST_F(OneHost, QueriesClearUnknownFields) {
  Endpoint e;
  struct {
    ibv_device_attr_ex known;
    std::array<std::uint8_t, 64> newer;
  } device;
  struct {
    ibv_port_attr known;
    std::array<std::uint8_t, 64> newer;
  } port;
  struct {
    ibv_gid_entry known;
    std::array<std::uint8_t, 64> newer;
  } gid;
  const verbs_context* const calls = verbs_get_ctx(e.context);
  const auto expect_cleared = [](auto& object, auto&& query) {
    std::memset(&object, 0xA5, sizeof object);
    EXPECT_EQ(query(&object.known, sizeof object), 0);
    EXPECT_EQ(std::ranges::count(object.newer, 0), 64);
  };
  expect_cleared(device, [&](ibv_device_attr_ex* a, std::size_t size) {
    return calls->query_device_ex(e.context, nullptr, a, size);
  });
  expect_cleared(port, [&](ibv_port_attr* a, std::size_t size) {
    return calls->query_port(e.context, 1, a, size);
  });
  expect_cleared(gid, [&](ibv_gid_entry* a, std::size_t size) {
    return _ibv_query_gid_ex(e.context, 1, 0, a, 0, size);
  });
  expect_cleared(gid, [&](ibv_gid_entry* a, std::size_t size) {
    return static_cast<int>(_ibv_query_gid_table(e.context, a, 1, 0, size)) - 1;
  });
}

TEST_F(OneHost, ASendQueueReportsThatItIsDrainedOnRequest) {
  Endpoint e;
  e.connect(e.name());
  const auto modify = [&](ibv_qp_state state, int mask) {
    ibv_qp_attr a{};
    a.qp_state = state;
    a.en_sqd_async_notify = 1;
    return ibv_modify_qp(e.qp, &a, IBV_QP_STATE | mask);
  };
  ASSERT_EQ(modify(IBV_QPS_SQD, 0), 0);
  pollfd want{e.context->async_fd, POLLIN, 0};
  EXPECT_EQ(::poll(&want, 1, 0), 0);
  ASSERT_EQ(modify(IBV_QPS_RTS, 0), 0);
  ASSERT_EQ(modify(IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  EXPECT_EQ(e.wait_async(), IBV_EVENT_SQ_DRAINED);
}

}  // namespace
}  // namespace cepheus::verbs
