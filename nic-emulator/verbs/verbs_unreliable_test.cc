// Messages without acknowledgements between two plain verbs programs, through a real switch
// process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "nic-emulator/verbs/test_endpoint.h"

namespace cepheus::verbs {
namespace {

using Unreliable = TwoHosts;

TEST_F(Unreliable, AnUnreliableConnectionSendsAndWrites) {
  Peer peer([](Peer& me) {
    Endpoint e({.type = IBV_QPT_UC});
    ASSERT_EQ(e.post_recv(1, 0, 8000), 0);
    me.meet(e);
    const auto wc = e.wait();
    expect_success(wc, IBV_WC_RECV);
    EXPECT_EQ(wc->byte_len, 5000u);
    EXPECT_EQ(e.memory[4999], 0x42);
    EXPECT_EQ(e.memory[20'000 + 2999], 0x42) << "the WRITE came first";
    me.signal();
  });
  Endpoint e({.type = IBV_QPT_UC});
  std::fill_n(e.memory.begin(), 5000, std::uint8_t{0x42});
  const Endpoint::Name target = peer.meet(e);
  ASSERT_EQ(e.post_send(1, 0, 3000, remote(IBV_WR_RDMA_WRITE, target, 20'000)), 0);
  ASSERT_EQ(e.post_send(2, 0, 5000), 0);
  expect_success(e.wait(), IBV_WC_RDMA_WRITE);
  expect_success(e.wait(), IBV_WC_SEND);
  peer.wait();
}

// --- Datagrams.

class AddressTo {
 public:
  AddressTo(Endpoint& e, const Endpoint::Name& peer) {
    ibv_ah_attr attributes = Endpoint::address_of(peer);
    handle_ = ibv_create_ah(e.pd, &attributes);
  }
  explicit AddressTo(ibv_ah* handle) : handle_(handle) {}
  ~AddressTo() {
    if (handle_ != nullptr) {
      EXPECT_EQ(ibv_destroy_ah(handle_), 0);
    }
  }
  AddressTo(const AddressTo&) = delete;
  AddressTo& operator=(const AddressTo&) = delete;
  ibv_ah* get() const { return handle_; }

 private:
  ibv_ah* handle_;
};

auto datagram(ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey = kQkey) {
  return [=](ibv_send_wr& wr) {
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = qkey;
  };
}

TEST_F(Unreliable, ADatagramNamesItsSenderAndIsAnswered) {
  constexpr std::uint32_t kSize = 3000;
  Peer peer([](Peer& me) {
    Endpoint e({.type = IBV_QPT_UD});
    e.start_datagrams();
    ASSERT_EQ(e.post_recv(1, 0, 4096 + sizeof(ibv_grh)), 0);
    me.send_name(e.name());
    const Endpoint::Name sender = me.receive_name();
    me.signal();
    auto wc = e.wait();
    expect_success(wc, IBV_WC_RECV);
    EXPECT_EQ(wc->byte_len, kSize + sizeof(ibv_grh));
    EXPECT_NE(wc->wc_flags & IBV_WC_GRH, 0u);
    EXPECT_EQ(wc->src_qp, sender.qpn);
    EXPECT_EQ(wc->sl, 2) << "UCX drops it otherwise";
    EXPECT_EQ(e.memory[sizeof(ibv_grh) + kSize - 1], 0xAB);
    const std::uint8_t* ip = e.memory.data() + 20;
    EXPECT_EQ(ip[0], 0x45);
    EXPECT_EQ(std::memcmp(ip + 12, sender.gid.raw + 12, 4), 0);
    const AddressTo back(
        ibv_create_ah_from_wc(e.pd, &*wc, reinterpret_cast<ibv_grh*>(e.memory.data()), 1));
    ASSERT_NE(back.get(), nullptr);
    ASSERT_EQ(e.post_send(2, 0, 8, datagram(back.get(), wc->src_qp)), 0);
    expect_success(e.wait(), IBV_WC_SEND);
    me.wait();
  });
  Endpoint e({.extended = true, .type = IBV_QPT_UD});
  e.start_datagrams();
  peer.send_name(e.name());
  const Endpoint::Name target = peer.receive_name();
  const AddressTo to(e, target);
  ASSERT_NE(to.get(), nullptr);
  peer.wait();
  ASSERT_EQ(e.post_recv(3, 8192, 64), 0);
  std::fill_n(e.memory.begin(), kSize, std::uint8_t{0xAB});
  // With a wrong key, to no QP, and right: only the last arrives.
  ASSERT_EQ(e.post_send(1, 0, 16, datagram(to.get(), target.qpn, kQkey + 1)), 0);
  ASSERT_EQ(e.post_send(2, 0, 16, datagram(to.get(), target.qpn ^ 0x5A5A)), 0);
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(e.qp);
  ibv_wr_start(qp);
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  ibv_wr_set_ud_addr(qp, to.get(), target.qpn, kQkey);
  const ibv_sge sge = e.sge(0, kSize);
  ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  for (int i = 0; i < 3; ++i) expect_success(e.wait(), IBV_WC_SEND);
  const auto answer = e.wait();
  expect_success(answer, IBV_WC_RECV);
  EXPECT_EQ(answer->src_qp, target.qpn);
  peer.signal();
}

}  // namespace
}  // namespace cepheus::verbs
