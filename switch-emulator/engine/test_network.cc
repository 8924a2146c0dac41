#include "switch-emulator/engine/test_network.h"

#include <gtest/gtest.h>

#include "wire/icrc.h"
#include "wire/mrp.h"
#include "wire/test_bytes.h"

namespace cepheus::fabric {
namespace {

constexpr std::size_t kFarAway = 1000;
constexpr int kMostSteps = 100000;  // frames passed for one event: beyond it there is a loop

using wire::bytes_of;

}  // namespace

std::size_t TestNetwork::add_switch() {
  const std::size_t s = switches_.size();
  SwitchConfig config;
  config.name = "s" + std::to_string(s);
  config.address = Ipv4(10, 255, 0, static_cast<std::uint8_t>(s + 1));
  config.mac = wire::mac_for(config.address);
  config.hello = {};                                 // tests of trunks turn it on
  config.rules.last_ack_again = false;               // tests of it turn it on
  config.feedback_wait = wire::times::kSwitchClock;  // as live
  switches_.push_back({config, {}, nullptr});
  return s;
}

std::size_t TestNetwork::add_host(std::size_t at_switch) {
  const std::size_t host = hosts_.size();
  SwitchNode& s = switches_[at_switch];
  PortConfig port;
  port.name = "h" + std::to_string(host);
  port.host = ip(host);
  port.peer_mac = wire::mac_for(port.host);
  hosts_.push_back({at_switch, static_cast<std::uint16_t>(s.peers.size()), {}, {}});
  s.config.ports.push_back(port);
  s.peers.push_back({host, kNone, 0});
  return host;
}

void TestNetwork::link(std::size_t a, std::size_t b) {
  const auto port_a = static_cast<std::uint16_t>(switches_[a].peers.size());
  const auto port_b = static_cast<std::uint16_t>(switches_[b].peers.size());
  const auto add = [&](std::size_t from, std::size_t to, std::uint16_t far_port) {
    PortConfig port;
    port.kind = PortKind::kSwitch;
    port.name = switches_[to].config.name;
    port.peer_mac = switches_[to].config.mac;
    port.peer = switches_[to].config.address;
    switches_[from].config.ports.push_back(port);
    switches_[from].peers.push_back({kNone, to, far_port});
  };
  add(a, b, port_b);
  add(b, a, port_a);
}

std::vector<std::size_t> TestNetwork::distances_from(std::size_t s) const {
  std::vector<std::size_t> distance(switches_.size(), kFarAway);
  distance[s] = 0;
  std::deque<std::size_t> todo{s};
  while (!todo.empty()) {
    const std::size_t at = todo.front();
    todo.pop_front();
    for (const Peer& peer : switches_[at].peers) {
      if (peer.switch_no == kNone || distance[peer.switch_no] != kFarAway) continue;
      distance[peer.switch_no] = distance[at] + 1;
      todo.push_back(peer.switch_no);
    }
  }
  return distance;
}

void TestNetwork::start() {
  auto attachments = std::make_shared<net::Attachments>();
  std::set<std::size_t> with_hosts;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    with_hosts.insert(hosts_[host].at);
    attachments->emplace(ip(host), switches_[hosts_[host].at].config.address);
  }
  for (const std::size_t leaf : with_hosts) {
    const auto distance = distances_from(leaf);
    for (std::size_t s = 0; s < switches_.size(); ++s) {
      if (s == leaf) continue;
      Route route{switches_[leaf].config.address, {}};
      for (std::uint16_t p = 0; p < switches_[s].peers.size(); ++p) {
        const std::size_t next = switches_[s].peers[p].switch_no;
        if (next != kNone && distance[next] + 1 == distance[s]) route.ports.push_back(PortId(p));
      }
      switches_[s].config.routes.push_back(std::move(route));
    }
  }
  for (SwitchNode& s : switches_) s.config.attachments = attachments;
  for (SwitchNode& s : switches_) s.engine = std::make_unique<Switch>(s.config, payloads);
}

std::uint64_t TestNetwork::count(Counter c, std::size_t s) const {
  return switches_[s].engine->counters()[c];
}

GroupView TestNetwork::view(std::size_t s) const {
  const auto views = switches_[s].engine->groups();
  EXPECT_EQ(views.size(), 1u);
  return views.empty() ? GroupView{} : views.front();
}

PathView TestNetwork::path_view(std::size_t host) const {
  for (const PathView& path : view(hosts_[host].at).paths) {
    if (path.is_host && path.host == ip(host)) return path;
  }
  ADD_FAILURE() << "host " << host << " is no path of its leaf";
  return {};
}

PortId TestNetwork::port_between(std::size_t from, std::size_t to) const {
  const auto& peers = switches_[from].peers;
  for (std::uint16_t p = 0; p < peers.size(); ++p) {
    if (peers[p].switch_no == to) return PortId(p);
  }
  ADD_FAILURE() << "no link from switch " << from << " to " << to;
  return {};
}

void TestNetwork::inject(std::size_t host, const Frame& frame) {
  inject_bytes(host, bytes_of(frame));
}

void TestNetwork::inject_bytes(std::size_t host, std::vector<std::uint8_t> bytes) {
  if (tos != 0) {
    const auto place = std::span(bytes).subspan<wire::kIpOffset, wire::Ipv4Header::kSize>();
    wire::Ipv4Header ip = *wire::Ipv4Header::parse(place);
    ip.tos = tos;
    ip.emit(place);
  }
  inject_at(hosts_[host].at, PortId(hosts_[host].port), std::move(bytes));
}

void TestNetwork::inject_at(std::size_t s, PortId port, std::vector<std::uint8_t> bytes) {
  passing_.push_back({s, port.value(), std::move(bytes), icrc});
  run();
}

void TestNetwork::arrive(const Passing& passing) {
  const wire::BufferRef ref = payloads.add(passing.bytes);
  auto frame = Frame::from_bytes(payloads.bytes(ref), ref);
  ASSERT_TRUE(frame.has_value());
  if (frame->icrc_state == wire::Icrc::kPresent && passing.icrc == wire::Icrc::kDeferred) {
    frame->icrc_state = wire::Icrc::kDeferred;
  }
  Switch& engine = *switches_[passing.to].engine;
  SwitchOutput actions;
  engine.on_packet(now_, PortId(passing.port), *frame, actions);
  engine.check_consistent();
  take(passing.to, actions);
  payloads.release(ref);
}

void TestNetwork::take(std::size_t s, SwitchOutput& actions) {
  const Switch& engine = *switches_[s].engine;
  const bool balances = engine.config().rules.every_drop_counted;
  EXPECT_EQ(balances ? engine.imbalance() : "", "");
  for (const Emit& emit : actions.emits) {
    const Peer& peer = switches_[s].peers.at(emit.port.value());
    EXPECT_TRUE(emit.frame.icrc_state == wire::Icrc::kNone || wire::check_icrc(emit.frame))
        << text(emit.frame);
    const auto bytes = bytes_of(emit.frame);
    if (peer.host != kNone) {
      hosts_[peer.host].inbox.push_back(text(emit.frame));
      const auto datagram = wire::UdpDatagram::parse(emit.frame);
      if (datagram && listens) {  // the process there gets it, not just the host
        EXPECT_EQ(datagram->udp.source_port, wire::kDefaultMrpUdpPort) << text(emit.frame);
        EXPECT_EQ(datagram->udp.destination_port, control_port(peer.host)) << text(emit.frame);
      }
      hosts_[peer.host].frames.push_back(bytes);
      if (const auto message = wire::MrpMessage::parse(emit.frame.payload()); datagram && message) {
        hosts_[peer.host].last_members.assign(message->list().begin(), message->list().end());
      }
      continue;
    }
    if (lose && lose(s, peer.switch_no, text(emit.frame))) continue;
    const auto headers = wire::RoceHeaders::parse(emit.frame);
    if (headers && on_trunk) on_trunk(s, peer.switch_no, *headers);
    const auto message = wire::MrpMessage::parse(emit.frame.payload());
    if (!headers && message && on_registration) on_registration(s, peer.switch_no, *message);
    passing_.push_back({peer.switch_no, peer.port, bytes, emit.frame.icrc_state});
  }
}

void TestNetwork::run() {
  for (int step = 0; !passing_.empty(); ++step) {
    ASSERT_LT(step, kMostSteps) << "frames go in circles";
    const Passing passing = std::move(passing_.front());
    passing_.pop_front();
    arrive(passing);
  }
}

void TestNetwork::advance(Duration d) {
  const Instant end = now_ + d;
  for (;;) {
    SwitchNode* next = nullptr;
    for (SwitchNode& s : switches_) {
      if (s.engine->deadline() <= end &&
          (!next || s.engine->deadline() < next->engine->deadline())) {
        next = &s;
      }
    }
    if (next == nullptr) break;
    const Instant due = next->engine->deadline();
    now_ = std::max(now_, due);
    SwitchOutput actions;
    next->engine->on_timer(now_, actions);
    ASSERT_GT(next->engine->deadline(), due) << "a deadline that on_timer does not move";
    next->engine->check_consistent();
    take(static_cast<std::size_t>(next - switches_.data()), actions);
    run();
  }
  now_ = end;
}

void TestNetwork::set_port(std::size_t s, PortId port, bool up) {
  SwitchOutput actions;
  if (up) {
    sw(s).on_port_up(now_, port, actions);
  } else {
    sw(s).on_port_down(now_, port, actions);
  }
  take(s, actions);
  run();
}

void TestNetwork::restart(std::size_t s) {
  switches_[s].engine = std::make_unique<Switch>(switches_[s].config, payloads);
}

Texts TestNetwork::inbox(std::size_t host) {
  Texts texts;
  texts.swap(hosts_[host].inbox);
  hosts_[host].frames.clear();
  return texts;
}

void TestNetwork::clear() {
  for (std::size_t h = 0; h < hosts_.size(); ++h) inbox(h);
}

wire::Reth reth_at(const TestNetwork& net, std::size_t host) {
  const auto frame = Frame::from_bytes(net.frames(host).back());
  EXPECT_TRUE(frame && wire::check_icrc(*frame));
  return wire::RoceHeaders::parse(*frame)->reth;
}

bool requests_ack(const TestNetwork& net, std::size_t host) {
  const auto frame = Frame::from_bytes(net.frames(host).back());
  EXPECT_TRUE(frame && wire::check_icrc(*frame));
  return wire::RoceHeaders::parse(*frame)->bth.ack_request;
}

}  // namespace cepheus::fabric
