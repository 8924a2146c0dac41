// Two processes, each a plain verbs program on its own host, through a real switch process.
#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "nic-emulator/verbs/datagram.h"
#include "nic-emulator/verbs/test_endpoint.h"

namespace cepheus::verbs {
namespace {

TEST_F(TwoHosts, SendTransmitsBytesAndImmediate) {
  Peer peer([](Peer& me) {
    Endpoint e;
    ASSERT_EQ(e.post_recv(7, 0, 5000), 0);
    const Endpoint::Name sender = me.meet(e);
    const auto wc = e.wait();
    expect_success(wc, IBV_WC_RECV);
    EXPECT_EQ(wc->wr_id, 7u);
    EXPECT_EQ(wc->byte_len, 4321u);
    EXPECT_EQ(wc->qp_num, e.qp->qp_num);
    EXPECT_EQ(wc->src_qp, sender.qpn);
    EXPECT_NE(wc->wc_flags & IBV_WC_WITH_IMM, 0u);
    EXPECT_EQ(be32toh(wc->imm_data), 0x01020304u);
    for (std::size_t i = 0; i < 4321; ++i) ASSERT_EQ(e.memory[i], static_cast<std::uint8_t>(i * 7));
  });
  Endpoint e;
  for (std::size_t i = 0; i < 4321; ++i) e.memory[i] = static_cast<std::uint8_t>(i * 7);
  peer.meet(e);
  ASSERT_EQ(e.post_send(1, 0, 4321,
                        [](ibv_send_wr& wr) {
                          wr.opcode = IBV_WR_SEND_WITH_IMM;
                          wr.imm_data = htobe32(0x01020304);
                        }),
            0);
  expect_success(e.wait(), IBV_WC_SEND);
}

TEST_F(TwoHosts, WriteReachesTheMemoryOfAProgramThatNeverPolls) {
  Peer peer([](Peer& me) {
    Endpoint e;
    me.meet(e);
    // Only the library's own thread can take this packet in and acknowledge it.
    const std::atomic_ref<std::uint8_t> last(e.memory[99'999]);
    const auto until = std::chrono::steady_clock::now() + kTimeLimit;
    while (last.load() == 0 && std::chrono::steady_clock::now() < until) {
    }
    EXPECT_EQ(last.load(), 0x5A);
    me.wait();
  });
  Endpoint e;
  std::fill_n(e.memory.begin(), 100'000, std::uint8_t{0x5A});
  const Endpoint::Name target = peer.meet(e);
  ASSERT_EQ(e.post_send(1, 0, 100'000, remote(IBV_WR_RDMA_WRITE, target)), 0);
  expect_success(e.wait(), IBV_WC_RDMA_WRITE);
  peer.signal();
}

// Memory that a program registers, and unmaps too early.
class EarlyUnmapped {
 public:
  static constexpr std::size_t kSize = 1 << 16;

  explicit EarlyUnmapped(ibv_pd* pd)
      : memory_(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        mr_(ibv_reg_mr(pd, memory_, kSize,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC)) {
    EXPECT_NE(mr_, nullptr);
  }
  ~EarlyUnmapped() { EXPECT_EQ(ibv_dereg_mr(mr_), 0); }
  EarlyUnmapped(const EarlyUnmapped&) = delete;
  EarlyUnmapped& operator=(const EarlyUnmapped&) = delete;

  void unmap() { ::munmap(memory_, kSize); }
  ibv_sge sge() const { return {reinterpret_cast<std::uint64_t>(memory_), kSize, mr_->lkey}; }
  Endpoint::Name name(const Endpoint& e) const {
    Endpoint::Name name = e.name();
    name.address = sge().addr;
    name.rkey = mr_->rkey;
    return name;
  }

 private:
  void* const memory_;
  ibv_mr* const mr_;
};

class UnmappedTarget : public TwoHosts, public ::testing::WithParamInterface<ibv_wr_opcode> {};

TEST_P(UnmappedTarget, RefusesAccessAndContinues) {
  Peer peer([](Peer& me) {
    Endpoint e;
    EarlyUnmapped region(e.pd);
    me.send_name(region.name(e));
    e.connect(me.receive_name());
    region.unmap();
    me.signal();
    me.wait();
  });
  Endpoint e;
  const Endpoint::Name target = peer.receive_name();
  e.connect(target);
  peer.send_name(e.name());
  peer.wait();
  const bool is_atomic = GetParam() == IBV_WR_ATOMIC_FETCH_AND_ADD;
  ASSERT_EQ(is_atomic ? e.post_send(1, 0, 8, atomic(GetParam(), target, 0))
                      : e.post_send(1, 0, 5000, remote(GetParam(), target)),
            0);
  expect_status(e.wait(), IBV_WC_REM_ACCESS_ERR);
  peer.signal();
  peer.join();
}

INSTANTIATE_TEST_SUITE_P(Operations, UnmappedTarget,
                         ::testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                           IBV_WR_ATOMIC_FETCH_AND_ADD));

TEST_F(TwoHosts, AReceiveOrSendInUnmappedMemoryFailsAlone) {
  Peer peer([](Peer& me) {
    Endpoint e;
    EarlyUnmapped region(e.pd);
    ibv_sge sge = region.sge();
    ibv_recv_wr wr{7, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(e.qp, &wr, &bad), 0);
    region.unmap();
    me.meet(e);
    expect_status(e.wait(), IBV_WC_LOC_PROT_ERR);
    me.wait();
  });
  Endpoint e;
  peer.meet(e);
  ASSERT_EQ(e.post_send(1, 0, 5000), 0);
  expect_status(e.wait(), IBV_WC_REM_OP_ERR);
  peer.signal();
  peer.join();

  Endpoint alone;
  alone.connect(alone.name());
  EarlyUnmapped region(alone.pd);
  region.unmap();
  const auto from_region = [&](ibv_send_wr& wr) { *wr.sg_list = region.sge(); };
  ASSERT_EQ(alone.post_send(2, 0, 0, from_region), 0);
  expect_status(alone.wait(), IBV_WC_LOC_PROT_ERR);
}

TEST_F(TwoHosts, WriteWithAWrongKeyFailsOnBothSides) {
  Peer peer([](Peer& me) {
    Endpoint e;
    me.meet(e);
    std::optional<ibv_event_type> event = e.wait_async();
    if (event == IBV_EVENT_COMM_EST) event = e.wait_async();
    EXPECT_EQ(event, IBV_EVENT_QP_ACCESS_ERR);
    me.signal();
  });
  Endpoint e;
  Endpoint::Name target = peer.meet(e);
  target.rkey ^= 0x5A5A;
  ASSERT_EQ(e.post_send(1, 0, 100, remote(IBV_WR_RDMA_WRITE, target)), 0);
  ASSERT_EQ(e.post_send(2, 0, 100), 0);
  const auto failed = e.wait();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->wr_id, 1u);
  EXPECT_EQ(failed->status, IBV_WC_REM_ACCESS_ERR) << ibv_wc_status_str(failed->status);
  const auto flushed = e.wait();
  ASSERT_TRUE(flushed);
  EXPECT_EQ(flushed->wr_id, 2u);
  EXPECT_EQ(flushed->status, IBV_WC_WR_FLUSH_ERR);
  peer.wait();
}

TEST_F(TwoHosts, ASenderWithoutRnrRetriesFailsWithoutAReceive) {
  Peer peer([](Peer& me) {
    Endpoint e;
    me.meet(e);
    me.wait();
  });
  Endpoint e;
  peer.meet(e, 7, 0);
  ASSERT_EQ(e.post_send(1, 0, 16), 0);
  expect_status(e.wait(), IBV_WC_RNR_RETRY_EXC_ERR);
  peer.signal();
}

TEST_F(TwoHosts, TheExtendedInterfacesTransmitTheSame) {
  Peer peer([](Peer& me) {
    Endpoint e({.extended = true});
    ASSERT_EQ(e.post_recv(5, 0, 4096), 0);
    me.meet(e);
    auto* const cq = reinterpret_cast<ibv_cq_ex*>(e.cq);
    ibv_poll_cq_attr none{};
    const auto until = std::chrono::steady_clock::now() + kTimeLimit;
    int started = ENOENT;
    while ((started = ibv_start_poll(cq, &none)) == ENOENT &&
           std::chrono::steady_clock::now() < until) {
    }
    ASSERT_EQ(started, 0);
    EXPECT_EQ(cq->wr_id, 5u);
    EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
    EXPECT_EQ(ibv_wc_read_byte_len(cq), 11u);
    EXPECT_EQ(ibv_wc_read_qp_num(cq), e.qp->qp_num);
    EXPECT_EQ(ibv_wc_read_imm_data(cq), htobe32(77));
    EXPECT_EQ(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
    EXPECT_EQ(std::string(e.memory.begin(), e.memory.begin() + 11), "hello world");
  });
  Endpoint e({.extended = true});
  peer.meet(e);
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(e.qp);
  std::string hello = "hello ";
  std::string world = "world";
  const ibv_data_buf parts[] = {{hello.data(), hello.size()}, {world.data(), world.size()}};
  ibv_wr_start(qp);  // then aborts
  qp->wr_id = 1;
  ibv_wr_send(qp);
  ibv_wr_abort(qp);
  ibv_wr_start(qp);
  qp->wr_id = 2;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(qp, htobe32(77));
  ibv_wr_set_inline_data_list(qp, 2, parts);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  const auto wc = e.wait();
  expect_success(wc, IBV_WC_SEND);
  EXPECT_EQ(wc->wr_id, 2u);
}

// The functions that users find at run time.
template <typename Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}
struct DatagramCalls {
  using Open = decltype(cepheus_datagram_open);
  using Send = decltype(cepheus_datagram_send);
  using Recv = decltype(cepheus_datagram_recv);
  using Close = decltype(cepheus_datagram_close);
  Open* open = find<Open>("cepheus_datagram_open");
  Send* send = find<Send>("cepheus_datagram_send");
  Recv* recv = find<Recv>("cepheus_datagram_recv");
  Close* close = find<Close>("cepheus_datagram_close");
};

TEST_F(TwoHosts, DatagramsArriveWithTheSendersAddressAndClosedPortsAreCounted) {
  const DatagramCalls udp;
  Peer peer([&](Peer& me) {
    Endpoint e;
    me.meet(e);
    cepheus_datagram_socket* socket = nullptr;
    ASSERT_EQ(udp.open(e.context, 7000, 0, 0, &socket), 0);
    cepheus_datagram_socket* second = nullptr;
    EXPECT_EQ(udp.open(e.context, 7000, 0, 0, &second), EADDRINUSE);
    me.signal();
    std::uint8_t data[2000];
    std::uint32_t from = 0;
    std::uint16_t from_port = 0;
    ssize_t size = -1;
    const auto until = std::chrono::steady_clock::now() + kTimeLimit;
    while (size < 0 && std::chrono::steady_clock::now() < until) {
      size = udp.recv(socket, data, sizeof data, &from, &from_port);
    }
    EXPECT_EQ(size, 1472);
    EXPECT_EQ(from, 0x0A000001u);
    EXPECT_EQ(from_port, 999);
    EXPECT_EQ(data[1471], 0xC3);
    EXPECT_EQ(nic_counter("datagrams_dropped_port_closed"), 1u);
    udp.close(socket);
  });
  Endpoint e;
  peer.meet(e);
  cepheus_datagram_socket* socket = nullptr;
  ASSERT_EQ(udp.open(e.context, 999, 0, 0, &socket), 0);
  peer.wait();
  std::vector<std::uint8_t> data(1473, 0xC3);
  EXPECT_EQ(udp.send(socket, 0x0A000002, 7000, data.data(), 1473), EMSGSIZE);
  EXPECT_EQ(udp.send(socket, 0x0A000002, 7001, data.data(), 10), 0);
  EXPECT_EQ(udp.send(socket, 0x0A000002, 7000, data.data(), 1472), 0);
  udp.close(socket);
  peer.join();
}

class LossyLinks : public ::testing::Test {
 protected:
  SwitchProcess fabric_{0,
                        "[link]\nloss = 0.02\n"
                        "[[switch]]\nname = \"s0\"\n"
                        "[[host]]\nname = \"h0\"\naddress = \"10.0.0.1\"\n"
                        "[[host]]\nname = \"h1\"\naddress = \"10.0.0.2\"\n"};
};

TEST_F(LossyLinks, EveryByteArrivesOnceAndInOrder) {
  constexpr std::size_t kMessages = 60;
  constexpr std::size_t kSize = 20'000;
  Peer peer([](Peer& me) {
    Endpoint e({.recv_wr = kMessages, .buffer = kMessages * kSize});
    for (std::size_t i = 0; i < kMessages; ++i) ASSERT_EQ(e.post_recv(i, i * kSize, kSize), 0);
    me.meet(e);
    for (std::size_t i = 0; i < kMessages; ++i) {
      const auto wc = e.wait();
      expect_success(wc, IBV_WC_RECV);
      ASSERT_EQ(wc->wr_id, i);
      ASSERT_EQ(wc->byte_len, std::uint32_t{kSize});
    }
    for (std::size_t i = 0; i < e.memory.size(); ++i) {
      ASSERT_EQ(e.memory[i], static_cast<std::uint8_t>(i * 31 >> 3)) << "byte " << i;
    }
    me.wait();  // the sender has its acknowledgements
  });
  Endpoint e({.send_wr = kMessages, .buffer = kMessages * kSize});
  for (std::size_t i = 0; i < e.memory.size(); ++i) {
    e.memory[i] = static_cast<std::uint8_t>(i * 31 >> 3);
  }
  peer.meet(e);
  for (std::size_t i = 0; i < kMessages; ++i) ASSERT_EQ(e.post_send(i, i * kSize, kSize), 0);
  for (std::size_t i = 0; i < kMessages; ++i) {
    const auto wc = e.wait();
    expect_success(wc, IBV_WC_SEND);
    ASSERT_EQ(wc->wr_id, i);
  }
  EXPECT_GT(nic_counter("tx_retransmitted"), 0u)
      << "the links lost nothing: the test tested nothing";
  peer.signal();
}

}  // namespace
}  // namespace cepheus::verbs
