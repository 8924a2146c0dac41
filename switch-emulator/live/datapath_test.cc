// Whose eyes see what passes through a datapath.
#include "switch-emulator/live/datapath.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "switch-emulator/live/test_datapath.h"
#include "wire/ecn.h"

namespace cepheus::live {
namespace {

using fabric::BareClient;
using fabric::Descriptor;

constexpr std::uint8_t kSecret = 0xC7;

net::LinkConfig slow_link() {
  net::LinkConfig link;
  link.delay = std::chrono::milliseconds(1);
  return link;
}

bool contains(std::span<const std::uint8_t> memory, std::span<const std::uint8_t> secret) {
  return std::search(memory.begin(), memory.end(),
                     std::boyer_moore_horspool_searcher(secret.begin(), secret.end())) !=
         memory.end();
}

// Under way on a slow link, a payload lies somewhere: not where a third user's clients can read it.
TEST_F(DatapathTest, KeepsPayloadsUnderWayFromOtherUsers) {
  build(net::Topology::star(3, slow_link()));
  const BareClient third = attach(2, 1002);  // the first user's pool is the first
  BareClient sender = attach(0, 1000), receiver = attach(1, 1001);
  const std::vector<std::uint8_t> secret(600, kSecret);
  sender.put(plain_datagram(0, 1, secret), *sender.take_slot());
  poll_for(std::chrono::milliseconds(5));
  const auto got = receiver.take();
  ASSERT_TRUE(got);
  ASSERT_NE(got->payload, Descriptor::kInline);
  EXPECT_TRUE(contains({receiver.pool.data() + got->payload, got->payload_len}, secret));
  EXPECT_FALSE(contains({third.pool.data(), third.pool.size()}, secret));
}

TEST_F(DatapathTest, KeepsDamagedPayloadsFromOtherUsers) {
  net::LinkConfig link = slow_link();
  link.corrupt = 1;
  build(net::Topology::star(3, link));
  const BareClient third = attach(2, 1002);
  BareClient sender = attach(0, 1000);
  const BareClient receiver = attach(1, 1001);
  const std::vector<std::uint8_t> secret(600, kSecret);
  for (int n = 0; n < 8; ++n) sender.put(plain_datagram(0, 1, secret), *sender.take_slot());
  poll_for(std::chrono::milliseconds(5));
  // All but the bit that was turned over.
  EXPECT_FALSE(contains({third.pool.data(), third.pool.size()}, std::span(secret).first(200)));
}

// A data packet from h0 to h1, by a sender that listens to marks or does not.
wire::Frame data_packet(wire::Ecn ecn) {
  wire::RoceHeaders headers;
  headers.bth.opcode = wire::Opcode::kRcSendOnly;
  headers.ip.tos = static_cast<std::uint8_t>(ecn);
  headers.ip.source = wire::Ipv4(10, 0, 0, 1);
  headers.ip.destination = wire::Ipv4(10, 0, 0, 2);
  wire::Frame frame;
  headers.emit(frame, 16);
  frame.set_inline_payload(std::array<std::uint8_t, 16>{});
  return frame;
}

TEST_F(DatapathTest, MarksWhatFindsALongQueueBeforeItsLinkAndWhoListens) {
  net::Topology topology = net::Topology::star(2);
  topology.hosts[1].down.rate = wire::BitRate{1'000'000};
  const wire::Bytes size = data_packet(wire::Ecn::kEct0).size();
  // Two frames wait in front, beside the one that is being sent, and all is marked.
  topology.hosts[1].down.ecn = {.on = true, .kmin = size, .kmax = 2 * size, .pmax = 0};
  build(topology);
  BareClient sender = attach(0), receiver = attach(1);
  for (int n = 0; n < 4; ++n) sender.put(data_packet(wire::Ecn::kEct0), 0);
  sender.put(data_packet(wire::Ecn::kNotCapable), 0);
  poll_for(std::chrono::milliseconds(20));
  std::vector<wire::Ecn> seen;
  while (const auto got = receiver.take()) {
    wire::Frame frame;
    ASSERT_TRUE(fabric::read_descriptor(*got, frame));
    const auto headers = wire::RoceHeaders::parse(frame);
    ASSERT_TRUE(headers);
    seen.push_back(wire::ecn_of(headers->ip.tos));
  }
  using enum wire::Ecn;
  EXPECT_EQ(seen, (std::vector{kEct0, kEct0, kEct0, kExperienced, kNotCapable}));
  const auto status = datapath->status([](const auto& slice) { slice(); });
  const std::pair<std::string, std::uint64_t> marked{"ecn_marked", 1};
  EXPECT_THAT(status[0].ports[1].counters, testing::Contains(marked));
}

}  // namespace
}  // namespace cepheus::live
