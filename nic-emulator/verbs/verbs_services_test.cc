// Each service between two plain verbs programs, through a real switch process.
#include <endian.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "nic-emulator/verbs/test_endpoint.h"

namespace cepheus::verbs {
namespace {

using Services = TwoHosts;

// A peer that lets the other side access its memory.
void serve_memory(Peer& me, const std::function<void(Endpoint&)>& before,
                  const std::function<void(Endpoint&)>& after) {
  Endpoint e;
  before(e);
  me.meet(e);
  me.wait();
  after(e);
}

std::uint64_t& word(Endpoint& e, std::size_t offset) {
  return *reinterpret_cast<std::uint64_t*>(e.memory.data() + offset);
}

TEST_F(Services, ReadFetchesThePeersData) {
  constexpr std::size_t kSize = 300'000;
  Peer peer([](Peer& me) {
    serve_memory(
        me,
        [](Endpoint& e) {
          for (std::size_t i = 0; i < kSize; ++i) e.memory[i] = static_cast<std::uint8_t>(i * 7);
        },
        [](Endpoint&) {});
  });
  Endpoint e;
  const Endpoint::Name target = peer.meet(e);
  // More at once than may be outstanding: they wait for each other.
  constexpr std::size_t kPart = kSize / 10;
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_EQ(e.post_send(i, i * kPart, kPart, remote(IBV_WR_RDMA_READ, target, i * kPart)), 0);
  }
  for (std::size_t i = 0; i < 10; ++i) {
    const auto wc = e.wait();
    expect_success(wc, IBV_WC_RDMA_READ);
    EXPECT_EQ(wc->wr_id, i);
  }
  for (std::size_t i = 0; i < kSize; ++i) ASSERT_EQ(e.memory[i], static_cast<std::uint8_t>(i * 7));
  peer.signal();
}

TEST_F(Services, AtomicsReturnTheOldValueAndChangeIt) {
  Peer peer([](Peer& me) {
    serve_memory(
        me, [](Endpoint& e) { word(e, 0) = 40; },
        [](Endpoint& e) { EXPECT_EQ(word(e, 0), 1000u); });
  });
  Endpoint e;
  const Endpoint::Name target = peer.meet(e);
  ASSERT_EQ(e.post_send(1, 0, 8, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, target, 2)), 0);
  expect_success(e.wait(), IBV_WC_FETCH_ADD);
  EXPECT_EQ(word(e, 0), 40u);
  ASSERT_EQ(e.post_send(2, 0, 8, atomic(IBV_WR_ATOMIC_CMP_AND_SWP, target, 42, 1000)), 0);
  expect_success(e.wait(), IBV_WC_COMP_SWAP);
  EXPECT_EQ(word(e, 0), 42u);
  ASSERT_EQ(e.post_send(3, 0, 8, atomic(IBV_WR_ATOMIC_CMP_AND_SWP, target, 42, 7)), 0);
  expect_success(e.wait(), IBV_WC_COMP_SWAP);
  EXPECT_EQ(word(e, 0), 1000u) << "the compared value had changed";
  peer.signal();
}

TEST_F(Services, WriteWithImmediateTakesAReceive) {
  Peer peer([](Peer& me) {
    Endpoint e;
    ASSERT_EQ(e.post_recv(9, 0, 0), 0);
    me.meet(e);
    const auto wc = e.wait();
    expect_success(wc, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(wc->wr_id, 9u);
    EXPECT_EQ(wc->byte_len, 5000u);
    EXPECT_EQ(be32toh(wc->imm_data), 0xCAFEu);
    EXPECT_EQ(e.memory[100 + 4999], 0x77);
    me.wait();
  });
  Endpoint e;
  std::fill_n(e.memory.begin(), 5000, std::uint8_t{0x77});
  const Endpoint::Name target = peer.meet(e);
  ASSERT_EQ(e.post_send(1, 0, 5000,
                        [&](ibv_send_wr& wr) {
                          remote(IBV_WR_RDMA_WRITE_WITH_IMM, target, 100)(wr);
                          wr.imm_data = htobe32(0xCAFE);
                        }),
            0);
  expect_success(e.wait(), IBV_WC_RDMA_WRITE);
  peer.signal();
}

TEST_F(Services, AWriteWithImmediateToAnInvalidKeyFailsTheReceive) {
  Peer peer([](Peer& me) {
    Endpoint e;
    ASSERT_EQ(e.post_recv(1, 0, 64), 0);
    me.meet(e);
    expect_status(e.wait(), IBV_WC_LOC_ACCESS_ERR);
    me.wait();
  });
  Endpoint e;
  Endpoint::Name target = peer.meet(e);
  target.rkey ^= 0x100;
  ASSERT_EQ(e.post_send(1, 0, 16, remote(IBV_WR_RDMA_WRITE_WITH_IMM, target)), 0);
  expect_status(e.wait(), IBV_WC_REM_ACCESS_ERR);
  peer.signal();
}

TEST_F(Services, TheExtendedInterfaceReadsAndCounts) {
  Peer peer([](Peer& me) {
    serve_memory(
        me, [](Endpoint& e) { word(e, 0) = 5; }, [](Endpoint& e) { EXPECT_EQ(word(e, 0), 8u); });
  });
  Endpoint e({.extended = true});
  const Endpoint::Name target = peer.meet(e);
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(e.qp);
  const auto into = [&](std::size_t offset) {
    const ibv_sge sge = e.sge(offset, 8);
    ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
  };
  ibv_wr_start(qp);
  qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;  // each after the request that it depends on
  ibv_wr_rdma_read(qp, target.rkey, target.address);
  into(0);
  ibv_wr_atomic_fetch_add(qp, target.rkey, target.address, 2);
  into(8);
  ibv_wr_atomic_cmp_swp(qp, target.rkey, target.address, 7, 8);
  into(16);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  expect_success(e.wait(), IBV_WC_RDMA_READ);
  expect_success(e.wait(), IBV_WC_FETCH_ADD);
  expect_success(e.wait(), IBV_WC_COMP_SWAP);
  EXPECT_EQ(word(e, 0), 5u);
  EXPECT_EQ(word(e, 8), 5u);
  EXPECT_EQ(word(e, 16), 7u);
  peer.signal();
}

// Another thread's queue ends at that moment, and its number is free again.
TEST_F(Services, ALimitEventReachesASharedReceiveQueueWithANumberThatWasUsedBefore) {
  Endpoint e;
  ::fcntl(e.context->async_fd, F_SETFL, O_NONBLOCK);
  ibv_srq_init_attr wanted{.srq_context = nullptr,
                           .attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0}};
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) ibv_destroy_srq(ibv_create_srq(e.pd, &wanted));
  });
  int events = 0;
  constexpr int kQueues = 50'000;
  for (int i = 0; i < kQueues; ++i) {
    ibv_srq* const srq = ibv_create_srq(e.pd, &wanted);
    ibv_srq_attr low{.max_wr = 0, .max_sge = 0, .srq_limit = 1};  // nothing is posted
    ibv_modify_srq(srq, &low, IBV_SRQ_LIMIT);
    ibv_async_event event{};
    if (ibv_get_async_event(e.context, &event) == 0) {
      ++events;
      ibv_ack_async_event(&event);
    }
    ibv_destroy_srq(srq);
  }
  stop = true;
  other.join();
  EXPECT_EQ(events, kQueues);
}

TEST_F(Services, ASharedReceiveQueueServesManyQueuePairsAndReportsItsLimit) {
  constexpr std::uint64_t kMessages = 6;
  Peer peer([](Peer& me) {
    Endpoint e({.shared_receives = true});
    for (std::uint64_t id = 0; id < kMessages; ++id) ASSERT_EQ(e.post_recv(id, id * 64, 64), 0);
    ibv_srq_attr attributes{};
    attributes.srq_limit = 2;
    ASSERT_EQ(ibv_modify_srq(e.srq, &attributes, IBV_SRQ_LIMIT), 0);
    ASSERT_EQ(ibv_query_srq(e.srq, &attributes), 0);
    EXPECT_EQ(attributes.srq_limit, 2u);
    EXPECT_GE(attributes.max_wr, 16u);
    ibv_qp* const second = e.create_qp();
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(ibv_destroy_srq(e.srq), EBUSY);
    me.meet(e);
    me.meet(e, second);
    std::array<unsigned, 2> from{};
    for (std::uint64_t id = 0; id < kMessages; ++id) {
      const auto wc = e.wait();
      expect_success(wc, IBV_WC_RECV);
      EXPECT_EQ(wc->wr_id, id);  // first posted, first taken, by either queue pair
      ++from[wc->qp_num == second->qp_num];
    }
    EXPECT_EQ(from, (std::array<unsigned, 2>{3, 3}));
    std::optional<ibv_event_type> event;
    do {
      event = e.wait_async();
    } while (event == IBV_EVENT_COMM_EST);
    EXPECT_EQ(event, IBV_EVENT_SRQ_LIMIT_REACHED);
    ASSERT_EQ(e.modify_to_error(), 0);
    EXPECT_EQ(e.wait_async(), IBV_EVENT_QP_LAST_WQE_REACHED);
    EXPECT_EQ(ibv_destroy_qp(second), 0);
    me.wait();
  });
  Endpoint e;
  peer.meet(e);
  ibv_qp* const second = e.create_qp();
  ASSERT_NE(second, nullptr);
  peer.meet(e, second);
  for (std::uint64_t id = 0; id < kMessages; ++id) {
    ASSERT_EQ(e.post_send(id, 0, 16, {}, id % 2 == 0 ? e.qp : second), 0);
    expect_success(e.wait(), IBV_WC_SEND);
  }
  peer.signal();
  EXPECT_EQ(ibv_destroy_qp(second), 0);
}

}  // namespace
}  // namespace cepheus::verbs
