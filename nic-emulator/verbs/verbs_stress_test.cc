// Plain verbs programs with large or failing requests: the specified results, and never a hang.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "nic-emulator/verbs/test_endpoint.h"

namespace cepheus::verbs {
namespace {

void expect_success(const std::optional<ibv_wc>& wc) { expect_status(wc, IBV_WC_SUCCESS); }

// Many QPs of an endpoint, its first among them.
class ManyQps {
 public:
  ManyQps(Endpoint& endpoint, std::size_t count) : endpoint_(endpoint), qps_{endpoint.qp} {
    while (qps_.size() < count) qps_.push_back(endpoint.create_qp());
  }
  ~ManyQps() {
    for (std::size_t i = 1; i < qps_.size(); ++i) EXPECT_EQ(ibv_destroy_qp(qps_[i]), 0);
  }
  ManyQps(const ManyQps&) = delete;
  ManyQps& operator=(const ManyQps&) = delete;

  ibv_qp* operator[](std::size_t i) const { return qps_[i]; }
  void meet(Peer& peer) {
    for (ibv_qp* qp : qps_) peer.meet(endpoint_, qp);
  }

 private:
  Endpoint& endpoint_;
  std::vector<ibv_qp*> qps_;
};

TEST_F(TwoHosts, AThousandQueuePairsTransmitTheirOwnMessages) {
  constexpr std::size_t kQps = 1000;
  constexpr std::size_t kSize = 1500;
  const Endpoint::Options options{.cqe = kQps, .send_wr = 1, .recv_wr = 1, .buffer = kQps * kSize};
  Peer peer([&](Peer& me) {
    Endpoint e(options);
    ManyQps qps(e, kQps);
    std::map<std::uint32_t, std::size_t> index;
    for (std::size_t i = 0; i < kQps; ++i) {
      index[qps[i]->qp_num] = i;
      ASSERT_EQ(e.post_recv(i, i * kSize, kSize, qps[i]), 0);
    }
    EXPECT_EQ(index.size(), kQps);
    qps.meet(me);
    for (std::size_t i = 0; i < kQps; ++i) {
      const auto wc = e.wait();
      expect_success(wc);
      ASSERT_EQ(index[wc->qp_num], wc->wr_id);
      ASSERT_EQ(e.memory[wc->wr_id * kSize + kSize - 1], static_cast<std::uint8_t>(wc->wr_id));
    }
    me.wait();
  });
  Endpoint e(options);
  ManyQps qps(e, kQps);
  for (std::size_t i = 0; i < kQps; ++i) {
    e.memory[i * kSize + kSize - 1] = static_cast<std::uint8_t>(i);
  }
  qps.meet(peer);
  for (std::size_t i = 0; i < kQps; ++i) ASSERT_EQ(e.post_send(i, i * kSize, kSize, {}, qps[i]), 0);
  for (std::size_t i = 0; i < kQps; ++i) expect_success(e.wait());
  peer.signal();
}

TEST_F(TwoHosts, ForkingInTheMiddleOfTrafficLosesNothing) {
  constexpr std::uint64_t kMessages = 100;
  Peer peer([](Peer& me) {
    Endpoint e({.recv_wr = kMessages});
    for (std::uint64_t i = 0; i < kMessages; ++i) ASSERT_EQ(e.post_recv(i, i * 4096, 4096), 0);
    me.meet(e);
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      const auto wc = e.wait();
      expect_success(wc);
      ASSERT_EQ(e.memory[wc->wr_id * 4096], static_cast<std::uint8_t>(wc->wr_id));
    }
    me.wait();
  });
  Endpoint e;
  peer.meet(e);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    e.memory[0] = static_cast<std::uint8_t>(i);
    ASSERT_EQ(e.post_send(i, 0, 4096), 0);
    if (i % 10 == 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        ibv_wc wc{};
        int polled = 1;  // completions of before
        while (polled > 0) polled = ibv_poll_cq(e.cq, 1, &wc);
        ::_exit(polled < 0 ? 0 : 1);
      }
      EXPECT_TRUE(ended_well(child));
    }
    expect_success(e.wait());
  }
  peer.signal();
}

TEST_F(TwoHosts, APortIsFreeAgainWhenItsHolderExecutesAnotherProgram) {
  const pid_t child = ::fork();
  if (child == 0) {
    be_host("h1");
    const Endpoint mine;  // the new program does not use it, and can't close it
    ::execlp("ibv_devinfo", "ibv_devinfo", nullptr);
    ::_exit(127);
  }
  EXPECT_TRUE(ended_well(child));
}

TEST_F(TwoHosts, APeerThatDiesInTheMiddleFailsAllWorkAndCanComeBack) {
  constexpr std::size_t kSize = 60'000;
  const auto receive = [](Peer& me) {
    Endpoint e;
    ASSERT_EQ(e.post_recv(0, 0, kSize), 0);
    me.meet(e);
    expect_success(e.wait());
    me.signal();
    me.wait();  // for the end
  };
  Endpoint e;
  {
    Peer peer(receive);
    peer.meet(e, 5);
    for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(e.post_send(id, 0, kSize), 0);
    expect_success(e.wait());
    peer.wait();
    peer.kill();  // it has posted nothing for the second
    for (std::uint64_t id = 1; id < 8; ++id) {
      const auto wc = e.wait();
      ASSERT_TRUE(wc) << "message " << id << " hangs";
      EXPECT_EQ(wc->wr_id, id);
      EXPECT_EQ(wc->status, id == 1 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
    }
  }
  Peer again(receive);
  ibv_qp* const fresh = e.create_qp();
  ASSERT_NE(fresh, nullptr);
  again.meet(e, fresh);
  ASSERT_EQ(e.post_send(9, 0, kSize, {}, fresh), 0);
  expect_success(e.wait());
  again.wait();
  again.signal();
  EXPECT_EQ(ibv_destroy_qp(fresh), 0);
}

TEST_F(TwoHosts, AnOverrunQueueFailsTheQueuePairsThatUseIt) {
  Peer peer([](Peer& me) {
    Endpoint e({.cqe = 2, .recv_wr = 8});
    for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(e.post_recv(id, 0, 64), 0);
    me.meet(e);
    std::vector<ibv_event_type> events;  // without polling: the queue overruns
    while (events.empty() || events.back() != IBV_EVENT_QP_FATAL) {
      const auto event = e.wait_async();
      ASSERT_TRUE(event) << "no event after " << events.size();
      if (*event != IBV_EVENT_COMM_EST) events.push_back(*event);
    }
    EXPECT_EQ(events, (std::vector{IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL}));
    ibv_qp_attr a{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(e.qp, &a, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(a.qp_state, IBV_QPS_ERR);
    me.signal();
    me.wait();
  });
  Endpoint e;
  peer.meet(e, 1);
  for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(e.post_send(id, 0, 64), 0);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(e.wait()) << "message " << i << " hangs";
  peer.wait();  // in ERR: it takes no more packets
  ASSERT_EQ(e.post_send(8, 0, 64), 0);
  const auto wc = e.wait();
  ASSERT_TRUE(wc);
  EXPECT_NE(wc->status, IBV_WC_SUCCESS);
  peer.signal();
}

}  // namespace
}  // namespace cepheus::verbs
