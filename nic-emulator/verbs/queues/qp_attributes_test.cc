#include "nic-emulator/verbs/queues/qp_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nic-emulator/verbs/device/device.h"

namespace cepheus::verbs {
namespace {

using ::testing::HasSubstr;

constexpr int kToInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kToRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

ibv_qp_attr rtr_attributes() {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_4096;
  a.dest_qp_num = 0x1234;
  a.rq_psn = 0xABCDEF;
  a.min_rnr_timer = 12;
  a.max_dest_rd_atomic = 1;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.dgid = gid_of(wire::Ipv4(10, 0, 0, 2));
  a.ah_attr.grh.hop_limit = 1;
  a.ah_attr.grh.flow_label = 0xFFFFFFFF;  // some programs leave this value
  return a;
}

std::string refusal(const ibv_qp_attr& a, int mask, QpState from) {
  const auto change = to_engine(a, mask, from, QpType::kRc);
  return change ? "accepted" : change.error().text;
}

TEST(QpAttributes, ConnectConvertsEverythingTheEngineNeeds) {
  const auto change = to_engine(rtr_attributes(), kToRtr, QpState::kInit, QpType::kRc);
  ASSERT_TRUE(change) << change.error().text;
  EXPECT_EQ(change->mask, kAttrState | kAttrAddress | kAttrPathMtu | kAttrRemoteQpn | kAttrRqPsn |
                              kAttrMinRnrTimer | kAttrMaxDestRdAtomic);
  const QpAttr& a = change->attributes;
  EXPECT_EQ(a.state, QpState::kRtr);
  EXPECT_EQ(a.remote_ip, wire::Ipv4(10, 0, 0, 2));
  EXPECT_EQ(a.path_mtu, 4096u);
  EXPECT_EQ(a.remote_qpn, Qpn(0x1234));
  EXPECT_EQ(a.rq_psn, Psn(0xABCDEF));
  EXPECT_EQ(a.hop_limit, 64);  // 1 means the subnet, which may have many switches
}

TEST(QpAttributes, MtuCodesAreBytesDoubled) {
  ibv_qp_attr a = rtr_attributes();
  std::uint32_t bytes = 256;
  for (const ibv_mtu code : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    a.path_mtu = code;
    const auto change = to_engine(a, kToRtr, QpState::kInit, QpType::kRc);
    ASSERT_TRUE(change);
    EXPECT_EQ(change->attributes.path_mtu, bytes);
    ibv_qp_attr back{};
    to_verbs(change->attributes, back);
    EXPECT_EQ(back.path_mtu, code);
    bytes *= 2;
  }
  a.path_mtu = static_cast<ibv_mtu>(6);
  EXPECT_THAT(refusal(a, kToRtr, QpState::kInit), HasSubstr("path_mtu"));
}

TEST(QpAttributes, AQueryReportsWhetherTheSendQueueIsDraining) {
  QpAttr engines;
  for (const bool is_draining : {true, false}) {
    engines.is_draining = is_draining;
    ibv_qp_attr a{};
    to_verbs(engines, a);
    EXPECT_EQ(a.sq_draining, is_draining ? 1 : 0);
  }
}

TEST(QpAttributes, AddressesOutsideTheFabricAreRefused) {
  ibv_qp_attr a = rtr_attributes();
  a.ah_attr.is_global = 0;
  EXPECT_THAT(refusal(a, kToRtr, QpState::kInit), HasSubstr("RoCE needs a GRH"));
  a = rtr_attributes();
  a.ah_attr.grh.dgid = {};
  EXPECT_THAT(refusal(a, kToRtr, QpState::kInit), HasSubstr("::ffff:a.b.c.d"));
  a = rtr_attributes();
  a.ah_attr.grh.sgid_index = 3;
  EXPECT_THAT(refusal(a, kToRtr, QpState::kInit), HasSubstr("sgid_index"));
}

TEST(QpAttributes, AttributesThatVerbsRequireAreRequiredEvenIfUnused) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  EXPECT_EQ(refusal(a, kToInit, QpState::kReset), "accepted");
  EXPECT_THAT(refusal(a, kToInit & ~IBV_QP_PORT, QpState::kReset), HasSubstr("required"));
  EXPECT_THAT(refusal(rtr_attributes(), kToRtr & ~IBV_QP_MAX_DEST_RD_ATOMIC, QpState::kInit),
              HasSubstr("required"));
  a.port_num = 2;
  EXPECT_THAT(refusal(a, kToInit, QpState::kReset), HasSubstr("port_num is 1"));
}

TEST(QpAttributes, DatagramsNeedAQkeyAndNoConnection) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qkey = 0x11111111;
  const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  const auto init = to_engine(a, to_init, QpState::kReset, QpType::kUd);
  ASSERT_TRUE(init) << init.error().text;
  EXPECT_EQ(init->mask, kAttrState | kAttrQkey);
  EXPECT_EQ(init->attributes.qkey, 0x11111111u);
  a.qp_state = IBV_QPS_RTR;
  EXPECT_TRUE(to_engine(a, IBV_QP_STATE, QpState::kInit, QpType::kUd));
  a.qp_state = IBV_QPS_RTS;
  EXPECT_TRUE(to_engine(a, IBV_QP_STATE | IBV_QP_SQ_PSN, QpState::kRtr, QpType::kUd));
}

TEST(QpAttributes, AttributesOfNoServiceAreRefused) {
  ibv_qp_attr a{};
  for (const int bit : {IBV_QP_ALT_PATH, IBV_QP_PATH_MIG_STATE, IBV_QP_CAP, IBV_QP_RATE_LIMIT}) {
    EXPECT_NE(refusal(a, bit, QpState::kRts), "accepted");
  }
  a.qp_state = IBV_QPS_UNKNOWN;
  EXPECT_THAT(refusal(a, IBV_QP_STATE, QpState::kRts), HasSubstr("no such qp_state"));
}

TEST(Gid, MapsAnAddressAndBack) {
  const wire::Ipv4 address(10, 1, 2, 3);
  const ibv_gid gid = gid_of(address);
  EXPECT_EQ(gid.raw[11], 0xFF);
  EXPECT_EQ(gid.raw[12], 10);
  EXPECT_EQ(gid.raw[15], 3);
  EXPECT_EQ(address_of(gid), address);
  ibv_gid link_local = gid;
  link_local.raw[0] = 0xFE;
  EXPECT_EQ(address_of(link_local), std::nullopt);
  EXPECT_EQ(address_of(gid_of(wire::Ipv4())), std::nullopt);
}

}  // namespace
}  // namespace cepheus::verbs
