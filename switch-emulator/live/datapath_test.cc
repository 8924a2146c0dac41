// The datapath with clients of several users, on a time that the test moves.
#include "switch-emulator/live/datapath.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "switch-emulator/ports/bare_client.h"

namespace cepheus::live {
namespace {

using fabric::BareClient;
using fabric::Descriptor;
using wire::Frame;
using wire::Instant;
using wire::Ipv4;

constexpr std::uint8_t kSecret = 0xC7;

Ipv4 address(std::size_t host) { return Ipv4(10, 0, 0, static_cast<std::uint8_t>(host + 1)); }

net::LinkConfig slow_link() {
  net::LinkConfig link;
  link.delay = std::chrono::milliseconds(1);
  return link;
}

class DatapathTest : public testing::Test {
 protected:
  void build(const net::Topology& topology) {
    datapath = std::make_unique<Datapath>(topology, *topology.plan());
    datapath->start(now);
  }
  BareClient attach(std::size_t host, uid_t user) {
    const auto fds = *datapath->shared_port(host)->open({getpid(), user});
    datapath->attach(now, host);
    return BareClient(fds, datapath->pools().geometry(), static_cast<std::uint32_t>(host));
  }
  void poll_for(wire::Duration duration) {
    for (const Instant until = now + duration; now < until; now += std::chrono::microseconds(50)) {
      datapath->poll(now);
    }
  }
  // A datagram that is not RoCE.
  static Frame plain_datagram(std::size_t from, std::size_t to,
                              std::span<const std::uint8_t> payload) {
    wire::UdpDatagram datagram;
    datagram.ip.source = address(from);
    datagram.ip.destination = address(to);
    datagram.udp.source_port = datagram.udp.destination_port = 9;
    Frame frame;
    datagram.emit(frame, payload);
    return frame;
  }

  Instant now{std::chrono::hours(1)};
  std::unique_ptr<Datapath> datapath;
};

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

}  // namespace
}  // namespace cepheus::live
