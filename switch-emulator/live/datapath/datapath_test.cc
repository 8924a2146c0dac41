// Packets in a datapath are readable for their users only.
#include "switch-emulator/live/datapath/datapath.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "switch-emulator/live/datapath/test_datapath.h"
#include "wire/ecn.h"
#include "wire/sender_group.h"
#include "wire/test_bytes.h"

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

// Frames under way on a slow link have their payload in memory that a third user's clients can't
// read.
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
  // All but the flipped bit.
  EXPECT_FALSE(contains({third.pool.data(), third.pool.size()}, std::span(secret).first(200)));
}

wire::RoceHeaders roce_headers(wire::Opcode opcode, wire::Ipv4 from, wire::Ipv4 to) {
  wire::RoceHeaders headers;
  headers.ip.source = from;
  headers.ip.destination = to;
  headers.bth.opcode = opcode;
  return headers;
}

// Hosts 0 and 1 belong to one user, 2 and 3 to another; all are members of a group that host 0
// leads.
class TwoUsersTest : public DatapathTest {
 protected:
  static constexpr wire::McstId kGroup{198, 18, 0, 7};
  static constexpr std::uint16_t kEpoch = 1;

  TwoUsersTest() {
    build(net::Topology::star(4));
    for (std::size_t host = 0; host < 4; ++host) {
      clients.push_back(attach(host, host < 2 ? 1000 : 1001));
    }
    auto registration = message_of(wire::MrpType::kRegister);
    for (std::size_t host = 0; host < clients.size(); ++host) {
      registration.add({address(host), qpn_of(host), 0});
    }
    send_mrp(registration);
    auto activation = message_of(wire::MrpType::kActivate);
    activation.header.flags = static_cast<std::uint16_t>(clients.size() - 1);
    send_mrp(activation);
  }
  static wire::Qpn qpn_of(std::size_t host) {
    return wire::Qpn(static_cast<std::uint32_t>(0x100 + host));
  }
  static wire::MrpMessage message_of(wire::MrpType type) { return wire::mrp_message(type, kGroup); }
  void send_mrp(const wire::MrpMessage& message) {
    send_registration(0, kGroup, wire::bytes_of(message));
  }
  void send_registration(std::size_t host, wire::Ipv4 to, std::span<const std::uint8_t> bytes) {
    wire::UdpDatagram datagram;
    datagram.ip.source = address(host);
    datagram.ip.destination = to;
    datagram.udp.source_port = 40000;
    datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
    wire::Frame frame;
    datagram.emit(frame, bytes);
    send(host, frame);
  }
  // In a descriptor with leftover bytes of the sender, as from a client with a dirty stack.
  void send(std::size_t host, const wire::Frame& frame) {
    fabric::Descriptor d{};
    const bool is_inline = frame.external == nullptr;
    const std::uint32_t slot = is_inline ? 0 : clients[host].take_slot().value();
    write_descriptor(frame, is_inline ? Descriptor::kInline : clients[host].offset_of(slot), d);
    const std::size_t used = d.header_len + (is_inline ? d.payload_len : std::size_t{0});
    std::fill(d.bytes.begin() + static_cast<std::ptrdiff_t>(used), d.bytes.end(), kSecret);
    d.icrc = 0x01010101u * kSecret;
    if (!is_inline) {
      std::memcpy(clients[host].pool.data() + d.payload, frame.external, frame.payload_len);
    }
    clients[host].put(d);
    datapath->wake(host);
    datapath->poll(now);
  }
  void send(std::size_t host, const wire::RoceHeaders& headers,
            std::span<const std::uint8_t> payload = {}) {
    wire::Frame frame;
    headers.emit(frame, payload.size());
    if (frame.payload_fits_inline(payload.size())) {
      frame.set_inline_payload(payload);
    } else {
      frame.set_external_payload(payload, wire::kNoBuffer);
    }
    send(host, frame);
  }
  void send_to_group(wire::Psn psn, std::span<const std::uint8_t> payload, std::size_t host = 0) {
    send_data(host, kGroup, wire::kVirtualQpn, psn, payload);
  }
  void send_data(std::size_t host, wire::Ipv4 to, wire::Qpn qpn, wire::Psn psn,
                 std::span<const std::uint8_t> payload) {
    auto data = roce_headers(wire::Opcode::kRcSendOnly, address(host), to);
    data.bth.destination_qp = qpn;
    data.bth.psn = psn;
    data.bth.ack_request = true;
    send(host, data, payload);
  }
  void acknowledge(std::size_t host, wire::Psn psn) {
    answer(host, kGroup, wire::kVirtualQpn, psn, {});
  }
  void answer(std::size_t host, wire::Ipv4 to, wire::Qpn qpn, wire::Psn psn, const wire::Aeth& aeth,
              bool becn = false) {
    auto answer = roce_headers(wire::Opcode::kRcAcknowledge, address(host), to);
    answer.bth.destination_qp = qpn;
    answer.bth.psn = psn;
    answer.bth.becn = becn;
    answer.aeth = aeth;
    send(host, answer);
  }
  // Every kind of feedback of the first user's hosts to host 2, the other user's.
  void answer_in_every_way(wire::Ipv4 to, wire::Qpn qpn, wire::Psn first) {
    for (const std::size_t host : {0, 1}) {
      answer(host, to, qpn, first, {wire::AckKind::kAck, wire::Aeth::kNoCreditLimit, 1}, true);
      answer(host, to, qpn, first + 1, {wire::AckKind::kNak, 0, 1});
      answer(host, to, qpn, first + 2, {wire::AckKind::kRnrNak, 1, 1});
      answer(host, to, qpn, first + 2, {wire::AckKind::kNak, 2, 1});
      auto notification = roce_headers(wire::Opcode::kCnp, address(host), to);
      notification.bth.destination_qp = qpn;
      send(host, notification);
    }
  }
  // The number of frames that all clients got. BareClient checks the bytes behind each length.
  std::uint32_t take_everything() {
    std::uint32_t taken = 0;
    for (BareClient& client : clients) taken += take_all(client);
    return taken;
  }
  // Whether `secret` is anywhere in the second user's memory.
  bool second_user_has(std::span<const std::uint8_t> secret) const {
    for (std::size_t host = 2; host < 4; ++host) {
      const std::span ring(
          reinterpret_cast<const std::uint8_t*>(clients[host].segment.rx().entries),
          fabric::kFrameRing * sizeof(Descriptor));
      if (contains(ring, secret)) return true;
    }
    return contains({clients[2].pool.data(), clients[2].pool.size()}, secret);
  }

  std::vector<BareClient> clients;
};

TEST_F(TwoUsersTest, NothingCrossesBehindTheLengthsOfAFrame) {
  EXPECT_EQ(take_everything(), 6u);  // registration messages
  const std::vector<std::uint8_t> secret(40, kSecret), few(16, 1), many(600, 2), none;
  send(0, roce_headers(wire::Opcode::kRcSendOnly, address(0), address(1)), secret);
  send(0, roce_headers(wire::Opcode::kRcAcknowledge, address(0), address(2)));
  send(0, plain_datagram(0, 2, few));
  EXPECT_EQ(take_everything(), 3u);
  const wire::Psn first = wire::group_start_psn(kGroup, kEpoch);
  wire::Psn psn = first;
  for (const auto& payload : {few, many, none}) {
    send_to_group(psn, payload);
    EXPECT_EQ(take_everything(), psn == first ? 4u : 3u) << "first a REPORT to the leader, too";
    for (std::size_t host = 1; host < 4; ++host) acknowledge(host, psn);
    EXPECT_EQ(take_everything(), 1u) << "a merged acknowledgement, which the switch makes";
    psn = psn + 1;
  }
  EXPECT_FALSE(second_user_has(std::span(secret).first(4)));
}

// Feedback that the switch merges and generates, of groups and of sender groups, and its own
// refusals.
TEST_F(TwoUsersTest, NothingCrossesInTheSwitchsOwnFrames) {
  const std::vector<std::uint8_t> secret(40, kSecret), payload(600, 2);
  take_everything();
  const wire::Psn first = wire::group_start_psn(kGroup, kEpoch);
  for (int n = 0; n < 3; ++n) send_to_group(first + n, payload, 2);
  EXPECT_EQ(take_everything(), 10u) << "copies, and a REPORT to the leader";
  answer(3, kGroup, wire::kVirtualQpn, first + 2, {});
  answer_in_every_way(kGroup, wire::kVirtualQpn, first);
  EXPECT_GT(take_everything(), 3u);

  constexpr wire::Qpn kVirtual{0xC00042};
  wire::SenderGroupMessage install;
  install.header.type = wire::MrpType::kInstall;
  install.header.flags = wire::SenderGroupMessage::kFresh;
  install.header.mcst_id = address(2);
  install.header.instance = install.header.epoch = 1;
  install.control_port = 40000;
  install.virtual_qpn = kVirtual;
  install.sender_qpn = qpn_of(2);
  install.start = first;
  install.addressed = address(0);
  install.share = wire::SenderGroupMessage::kWholeShare;
  for (const std::size_t host : {0, 1}) install.add({address(host), qpn_of(host)});
  send_registration(2, address(0), wire::bytes_of(install));
  EXPECT_EQ(take_everything(), 2u);
  for (int n = 0; n < 3; ++n) send_data(2, address(0), kVirtual, first + n, payload);
  EXPECT_EQ(take_everything(), 6u);
  answer_in_every_way(address(2), kVirtual, first);
  EXPECT_GT(take_everything(), 3u);

  auto stranger = message_of(wire::MrpType::kRegister);  // the identifier is another leader's
  stranger.add({address(2), qpn_of(2)});
  stranger.header.instance = 2;
  send_registration(2, kGroup, wire::bytes_of(stranger));
  EXPECT_EQ(take_everything(), 1u);
  EXPECT_FALSE(second_user_has(std::span(secret).first(4)));
}

// A data packet from h0 to h1, of an ECN-capable sender or another.
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

TEST_F(DatapathTest, MarksCapableFramesWhileTheQueueIsLong) {
  net::Topology topology = net::Topology::star(2);
  topology.hosts[1].down.rate = wire::BitRate{1'000'000};
  const wire::Bytes size = data_packet(wire::Ecn::kEct0).size();
  // Two frames wait in front, beside the one that is being sent, and all are marked.
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
  const auto status = datapath->reporting().status([](const auto& slice) { slice(); });
  EXPECT_EQ(status[0].ports[1].queue.ecn_marked, 1u);
}

// Beside programs that compute, the switch sleeps for some hundred microseconds at a time.
TEST_F(DatapathTest, AnUplinkIsBusyAllTheTimeThoughTheSwitchPollsSeldom) {
  net::Topology topology = net::Topology::star(2);
  const wire::BitRate rate{1'000'000'000};
  topology.hosts[0].up.rate = rate;
  build(topology);
  BareClient sender = attach(0), receiver = attach(1);
  const wire::Frame packet = data_packet(wire::Ecn::kNotCapable);
  constexpr wire::Duration kBetween = std::chrono::microseconds(400);
  constexpr int kLooks = 50;
  std::uint32_t arrived = 0;
  for (int look = 0; look < kLooks; ++look, now += kBetween) {
    while (sender.tx.free_entries() > 0) sender.put(packet, 0);
    while (datapath->poll(now)) {
    }
    arrived += take_all(receiver);
  }
  EXPECT_GT(arrived * rate.time_for(packet.size()), kBetween * (kLooks - 2));
}

}  // namespace
}  // namespace cepheus::live
