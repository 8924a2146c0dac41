// Brokers of several hosts, joined by links. Messages of different links are delivered in any
// order.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "controller/connections/engine/broker.h"

namespace cepheus::connections {

class TestHosts {
 public:
  struct DialledLink {
    std::size_t from, to;
    LinkId id;                  // at the dialler
    std::optional<LinkId> far;  // at the other; none: not up yet
    std::deque<Message> there, back;
    bool is_gone = false;
  };

  explicit TestHosts(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      brokers_.push_back(std::make_unique<Broker>(address(i), static_cast<std::uint32_t>(i)));
    }
  }

  static wire::Ipv4 address(std::size_t host) {
    return wire::Ipv4(wire::Ipv4(10, 0, 0, 1).value() + static_cast<std::uint32_t>(host));
  }
  Broker& broker(std::size_t host) { return *brokers_[host]; }
  std::vector<DialledLink>& cables() { return cables_; }
  // The events that a program has received so far.
  std::vector<Message>& inbox(std::size_t host, ProgramId program) {
    return inbox_[{host, program}];
  }

  template <typename Work>
  void at(std::size_t host, Work&& work) {
    Actions out;
    work(*brokers_[host], out);
    brokers_[host]->check_consistent();
    act(host, out);
  }
  void submit(std::size_t host, ProgramId program, const Message& request) {
    at(host, [&](Broker& b, Actions& out) { b.on_request(now, program, request, out); });
  }
  void bring(std::size_t host, ProgramId program, std::uint32_t user = 0) {
    broker(host).program_came(program, 100 + program, user);
  }
  void kill(std::size_t host, ProgramId program) {
    at(host, [&](Broker& b, Actions& out) { b.program_left(now, program, out); });
  }
  void pass(wire::Duration time) {
    now += time;
    for (std::size_t h = 0; h < brokers_.size(); ++h) {
      at(h, [&](Broker& b, Actions& out) { b.on_timer(now, out); });
    }
  }

  // Connects the link, or delivers its next message. False: there was nothing to do.
  bool step(std::size_t index, bool is_back) {
    if (cables_[index].is_gone) return false;
    if (!cables_[index].far) {
      const std::size_t from = cables_[index].from;
      cables_[index].far = broker(cables_[index].to).link_came(now, address(from));
      const LinkId id = cables_[index].id;
      at(from, [&](Broker& b, Actions& out) { b.link_is_up(now, id, out); });
      return true;
    }
    auto& queue = is_back ? cables_[index].back : cables_[index].there;
    if (queue.empty()) return false;
    const Message message = queue.front();
    queue.pop_front();
    const DialledLink& c = cables_[index];
    const std::size_t host = is_back ? c.from : c.to;
    const LinkId link = is_back ? c.id : *c.far;
    at(host, [&](Broker& b, Actions& out) { b.on_peer(now, link, message, out); });
    return true;
  }
  void run_until_idle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < cables_.size(); ++i) {
        for (const bool is_back : {false, true}) moved = step(i, is_back) || moved;
      }
    }
  }
  void disconnect(std::size_t index) {
    const DialledLink c = cables_[index];
    if (c.is_gone) return;
    cables_[index].is_gone = true;
    at(c.from, [&](Broker& b, Actions& out) { b.link_is_down(now, c.id, "disconnected", out); });
    if (c.far)
      at(c.to, [&](Broker& b, Actions& out) { b.link_is_down(now, *c.far, "disconnected", out); });
  }

  wire::Instant now{std::chrono::seconds(1)};

 private:
  void act(std::size_t host, const Actions& out) {
    for (const auto& dial : out.dials) {
      cables_.push_back({host, dial.host.value() - address(0).value(), dial.link, {}, {}, {}});
    }
    for (const auto& [link, message] : out.to_peers) {
      for (DialledLink& c : cables_) {
        if (c.is_gone) continue;
        if (c.from == host && c.id == link) c.there.push_back(message);
        if (c.to == host && c.far == link) c.back.push_back(message);
      }
    }
    for (const auto& [program, message] : out.to_programs)
      inbox_[{host, program}].push_back(message);
    for (const LinkId link : out.hang_ups) {
      for (std::size_t i = 0; i < cables_.size(); ++i) {
        const DialledLink& c = cables_[i];
        if ((c.from == host && c.id == link) || (c.to == host && c.far == link)) disconnect(i);
      }
    }
  }

  std::vector<std::unique_ptr<Broker>> brokers_;
  std::vector<DialledLink> cables_;
  std::map<std::pair<std::size_t, ProgramId>, std::vector<Message>> inbox_;
};

inline Message listen_to(const std::string& service) {
  return {.type = MessageType::kListen, .service = service};
}

inline Message connect_to(std::uint32_t request, std::initializer_list<std::size_t> hosts,
                          const std::string& service = "s") {
  Message m{.type = MessageType::kConnect, .request = request, .service = service, .data = {9}};
  for (const std::size_t h : hosts) m.hosts.push_back(TestHosts::address(h));
  return m;
}

}  // namespace cepheus::connections
