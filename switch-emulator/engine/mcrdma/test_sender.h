// A sender group on a TestNetwork: the packets and messages of its sender and receivers.
#pragma once

#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"
#include "wire/sender_group.h"
#include "wire/test_bytes.h"

namespace cepheus::fabric {

class TestSender {
 public:
  static constexpr Qpn kVirtual{0xC00042};

  // Hosts of the network; the first receiver is the alias. No two groups share it: its QPN is the
  // host's.
  TestSender(TestNetwork& net, std::size_t sender, std::vector<std::size_t> receivers)
      : qpn(TestNetwork::qpn(sender)),
        net_(net),
        sender_(sender),
        receivers_(std::move(receivers)) {}

  void set_receivers(std::vector<std::size_t> receivers) { receivers_ = std::move(receivers); }
  wire::SenderGroupMessage message(wire::MrpType type) const {
    wire::SenderGroupMessage m;
    m.header.type = type;
    m.header.mcst_id = TestNetwork::ip(sender_);
    m.header.instance = instance;
    m.header.epoch = epoch;
    m.header.seq = attempt;
    m.control_port = TestNetwork::control_port(sender_);
    m.virtual_qpn = virtual_qpn;
    m.sender_qpn = qpn;
    m.start = net_.start_psn();
    m.addressed = alias();
    m.share = wire::SenderGroupMessage::kWholeShare;
    for (const std::size_t r : receivers_) m.add(net_.member(r));
    for (const auto& [receiver, region] : regions) m.add_region(receiver, region);
    return m;
  }
  void install(bool fresh = true) {
    auto m = message(wire::MrpType::kInstall);
    m.header.flags = fresh ? wire::SenderGroupMessage::kFresh : 0;
    send_message(sender_, m, alias());
  }
  void remove() { send_message(sender_, message(wire::MrpType::kRemove), alias()); }
  void query() { send_message(sender_, message(wire::MrpType::kQuery), alias()); }
  // Sends INSTALL, and removes the resulting messages from the hosts' inboxes.
  void set_up() {
    install();
    EXPECT_EQ(share_that_came(), wire::SenderGroupMessage::kWholeShare);
    net_.clear();
  }
  // Of the messages in receivers' inboxes, each for its one receiver.
  std::uint64_t share_that_came() const {
    std::uint64_t sum = 0;
    for (const std::size_t r : receivers_) {
      for (const auto& received : messages_to(r)) {
        EXPECT_EQ(received.receiver_count, 1u);
        EXPECT_EQ(received.receivers[0], net_.member(r));
        sum += received.share;
      }
    }
    return sum;
  }
  // Messages about sender groups that reached the host's process.
  std::vector<wire::SenderGroupMessage> messages_to(std::size_t host) const {
    std::vector<wire::SenderGroupMessage> all;
    for (const auto& bytes : net_.frames(host)) {
      const auto frame = Frame::from_bytes(bytes);
      const auto datagram = wire::UdpDatagram::parse(*frame);
      if (!datagram) continue;
      auto payload = frame->payload();
      if (const wire::MrpKey* key = net_.config(0).mrp_key.get()) {
        const auto verified = key->verify(datagram->ip.source, payload);
        EXPECT_TRUE(verified);
        payload = *verified;
      }
      if (const auto m = wire::SenderGroupMessage::parse(payload)) all.push_back(*m);
    }
    return all;
  }
  // A datagram as its host writes it.
  std::vector<std::uint8_t> datagram_of(std::size_t host, const wire::SenderGroupMessage& m,
                                        Ipv4 destination) const {
    std::vector<std::uint8_t> payload(wire::MrpMessage::kMaxDatagram);
    std::size_t size = m.emit(payload);
    if (const wire::MrpKey* key = net_.config(0).mrp_key.get()) {
      size = key->sign(TestNetwork::ip(host), payload, size);
    }
    wire::UdpDatagram datagram;
    datagram.ethernet.source = wire::mac_for(TestNetwork::ip(host));
    datagram.ip.source = TestNetwork::ip(host);
    datagram.ip.destination = destination;
    datagram.udp.source_port = TestNetwork::control_port(host);
    datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
    Frame frame;
    datagram.emit(frame, std::span(payload).first(size));
    return wire::bytes_of(frame);
  }
  void send_message(std::size_t host, const wire::SenderGroupMessage& m, Ipv4 destination) {
    const auto bytes = datagram_of(host, m, destination);
    net_.inject(host, *Frame::from_bytes(bytes));
  }

  wire::RoceHeaders from_sender(wire::Opcode opcode, std::int64_t psn) const {
    auto h = net_.headers_from(sender_, opcode, psn);
    h.ip.destination = alias();
    h.bth.destination_qp = virtual_qpn;
    return h;
  }
  void data(std::int64_t psn) { request(wire::Opcode::kRcSendOnly, psn); }
  void data_to_acknowledge(std::int64_t psn) {
    auto h = from_sender(wire::Opcode::kRcSendOnly, psn);
    h.bth.ack_request = true;
    net_.inject(sender_, net_.make_frame(sender_, h, 64));
  }
  void request(wire::Opcode opcode, std::int64_t psn) {
    net_.inject(sender_, net_.make_frame(sender_, from_sender(opcode, psn), 64));
  }
  void write(std::int64_t psn, std::uint32_t region, std::uint64_t offset, std::uint32_t length) {
    auto h = from_sender(wire::Opcode::kRcWriteOnly, psn);
    h.reth = {offset, region, length};
    net_.inject(sender_, net_.make_frame(sender_, h, 64));
  }
  void feedback(std::size_t host, std::int64_t psn, wire::AckKind kind, std::uint8_t value,
                bool becn = false) {
    auto h = net_.headers_from(host, wire::Opcode::kRcAcknowledge, psn);
    h.ip.destination = TestNetwork::ip(sender_);
    h.bth.destination_qp = virtual_qpn;
    h.bth.becn = becn;
    h.aeth = {kind, value, static_cast<std::uint32_t>(psn)};
    net_.inject(host, net_.make_frame(host, h));
  }
  void ack(std::size_t host, std::int64_t psn) { ack({host}, psn); }
  void ack(std::initializer_list<std::size_t> hosts, std::int64_t psn) {  // each of them
    for (const std::size_t host : hosts) {
      feedback(host, psn, wire::AckKind::kAck, wire::Aeth::kNoCreditLimit);
    }
  }
  void nak(std::size_t host, std::int64_t psn) { feedback(host, psn, wire::AckKind::kNak, 0); }
  void rnr(std::size_t host, std::int64_t psn, std::uint8_t timer) {
    feedback(host, psn, wire::AckKind::kRnrNak, timer);
  }
  void cnp(std::size_t host) {
    auto h = net_.headers_from(host, wire::Opcode::kCnp, 0);
    h.ip.destination = TestNetwork::ip(sender_);
    h.bth.destination_qp = virtual_qpn;
    net_.inject(host, net_.make_frame(host, h));
  }
  Texts at_sender() { return net_.inbox(sender_); }
  // Headers of the one RoCE frame in a host's inbox.
  wire::RoceHeaders received(std::size_t host) const {
    EXPECT_EQ(net_.frames(host).size(), 1u);
    const auto frame = Frame::from_bytes(net_.frames(host).at(0));
    return *wire::RoceHeaders::parse(*frame);
  }
  Ipv4 alias() const {
    return addressed_to.is_unset() ? TestNetwork::ip(receivers_[0]) : addressed_to;
  }

  Qpn virtual_qpn = kVirtual, qpn;
  Ipv4 addressed_to;  // unset: the first receiver
  std::uint32_t instance = 7;
  std::uint16_t epoch = 1, attempt = 0;
  std::vector<std::pair<std::size_t, wire::MrpRegion>> regions;

 private:
  TestNetwork& net_;
  const std::size_t sender_;
  std::vector<std::size_t> receivers_;
};

// One switch, and a sender group of host 0 that is set up.
struct SenderOnStar {
  std::unique_ptr<TestNetwork> net;
  TestSender group;
};
inline SenderOnStar set_up_star(std::size_t hosts, std::vector<std::size_t> receivers) {
  auto net = make_star(hosts, false);
  TestSender group(*net, 0, std::move(receivers));
  group.set_up();
  return {std::move(net), std::move(group)};
}

// Leaves 0, 1 and 2 under spines 3 and 4, three hosts at each leaf: host 3 l + i is at leaf l.
inline std::unique_ptr<TestNetwork> make_leaf_spine(
    net::SenderGroups how = net::SenderGroups::kEverywhere,
    const std::function<void(SwitchConfig&)>& change = {}) {
  auto net = std::make_unique<TestNetwork>();
  for (int s = 0; s < 5; ++s) net->add_switch();
  for (std::size_t leaf = 0; leaf < 3; ++leaf) {
    for (const std::size_t spine : {3, 4}) net->link(leaf, spine);
  }
  for (std::size_t h = 0; h < 9; ++h) net->add_host(h / 3);
  for (std::size_t s = 0; s < 5; ++s) {
    net->config(s).sender_groups = how;
    if (change) change(net->config(s));
  }
  net->start();
  return net;
}

}  // namespace cepheus::fabric
