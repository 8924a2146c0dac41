// Under loss an unreliable connection delivers a subsequence of the messages, each whole and
// unaltered; datagrams likewise.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "nic-emulator/engine/nic_testing.h"

namespace cepheus::rnic::testing {
namespace {

constexpr std::size_t kSends = 60;
constexpr std::size_t kSendSlot = 4000;
constexpr std::size_t kInbox = Host::kMemory / 2;

void deliver(QpType type, std::uint64_t seed, std::size_t& delivered, std::size_t& lost) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  TwoHosts hosts({.type = type, .mtu = 256u << random() % 5, .shared = random() % 2 == 0});
  for (std::size_t i = 0; i < kSends; ++i) {
    hosts.b.receive(i, kInbox + i * kSendSlot, kSendSlot);
    const Sge sge = hosts.a.piece(i * kSendSlot, static_cast<std::uint32_t>(random() % 3900));
    SendWr wr{.wr_id = i, .op = SendOp::kSendImm, .signaled = true, .sges = {&sge, 1}};
    wr.imm = static_cast<std::uint32_t>(i);
    wr.destination.ip = hosts.b.nic.config().address;
    wr.remote_qpn = hosts.b.qpn;
    wr.qkey = hosts.options.qkey;
    ASSERT_TRUE(hosts.a.post(wr));
    hosts.exchange([&](const Packet&, const Host&) { return random() % 10 == 0; });
  }
  EXPECT_EQ(hosts.a.completions.size(), kSends);
  std::int64_t last = -1;
  for (std::size_t i = 0; i < hosts.b.completions.size(); ++i) {
    const Completion& c = hosts.b.completions[i];
    ASSERT_EQ(c.status, WcStatus::kSuccess);
    EXPECT_EQ(c.wr_id, i) << "receives in order";
    EXPECT_GT(c.imm, last) << "messages in order, once";
    last = c.imm;
    const std::size_t grh = type == QpType::kUd ? kGrhBytes : 0;
    const std::size_t length = hosts.a.completions[c.imm].byte_len;
    ASSERT_EQ(c.byte_len, length + grh);
    const auto at = [&](const Host& host, std::size_t offset) {
      return std::span(host.memory).subspan(offset, length);
    };
    EXPECT_TRUE(std::ranges::equal(at(hosts.a, c.imm * kSendSlot),
                                   at(hosts.b, kInbox + i * kSendSlot + grh)));
  }
  delivered += hosts.b.completions.size();
  lost += kSends - hosts.b.completions.size();
}

class UnreliableProperty : public ::testing::TestWithParam<QpType> {};
INSTANTIATE_TEST_SUITE_P(Services, UnreliableProperty, ::testing::Values(QpType::kUc, QpType::kUd),
                         [](const auto& p) { return p.param == QpType::kUc ? "Uc" : "Ud"; });

TEST_P(UnreliableProperty, DeliversWholeMessagesInOrderOrNotAtAll) {
  std::size_t delivered = 0;
  std::size_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    deliver(GetParam(), seed, delivered, lost);
  }
  EXPECT_GT(delivered, 100u);
  EXPECT_GT(lost, 100u);
}

}  // namespace
}  // namespace cepheus::rnic::testing
