// The sender of a sender group and its receivers, joined by a lossy network on virtual time. Host 0
// sends; receivers are spread over racks. The switches of these tests know no rules. They forward
// INSTALL and REMOVE as real ones do, and split the share alike: by rack, by spine, then by host.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "controller/receiver_membership.h"
#include "controller/sender_registration.h"
#include "controller/test_network.h"

namespace cepheus::mrp::test {

using wire::MrpReject;
using wire::MrpType;
using wire::SenderGroupMessage;

inline constexpr wire::Qpn kVirtualQpn{0xC12345};
inline constexpr wire::Psn kStartPsn{0x123456};

inline SenderConfig sender_config() {
  SenderConfig config;
  config.host = host(0);
  config.instance = kInstance;
  config.control_port = 41000;
  config.qpn = wire::Qpn(0x11);
  config.virtual_qpn = kVirtualQpn;
  config.start = kStartPsn;
  return config;
}

struct SenderNetworkShape {
  std::uint32_t receivers = 3;
  std::uint32_t racks = 2;   // the sender is in rack 0; receiver i in rack i % racks
  std::uint32_t spines = 1;  // between two racks
};

class SenderNetwork {
 public:
  struct Datagram {
    enum class To : std::uint8_t { kSendersSwitch, kRack, kReceiver, kSender } to;
    Ipv4 from, host;         // host: kReceiver's
    std::uint32_t rack = 0;  // kRack's
    SenderGroupMessage message;
  };
  using To = Datagram::To;

  explicit SenderNetwork(SenderNetworkShape shape, SenderConfig config = sender_config())
      : sender(config), shape_(shape) {
    for (std::uint32_t i = 1; i <= shape.receivers; ++i) {
      receivers.emplace(test::host(i), ReceiverMembership(member(i)));
    }
  }
  static std::vector<MrpMember> names(std::uint32_t n) {
    std::vector<MrpMember> list;
    for (std::uint32_t i = 1; i <= n; ++i) list.push_back(member(i));
    return list;
  }

  wire::Result<void> start(std::vector<SenderGroupMessage::Region> regions = {}) {
    auto result = sender.start(now, names(shape_.receivers), regions, outbox_);
    collect();
    return result;
  }
  void remove() {
    sender.remove(now, outbox_);
    collect();
  }
  void send_request() {
    sender.send_request(now, outbox_);
    collect();
  }
  void give_up(std::string why) {
    sender.give_up(now, std::move(why), outbox_);
    collect();
  }
  void tick() {
    sender.on_timer(now, outbox_);
    collect();
  }
  // A message of a switch, or a host, about itself to the sender. It only names the group.
  void send(Ipv4 from, MrpType type, std::uint16_t flags, std::vector<MrpMember> named) {
    under_way.push_back({To::kSender, from, {}, 0, of_group(type, flags, std::move(named))});
  }
  void reject(Ipv4 from, MrpReject reason, std::vector<MrpMember> named = {}) {
    send(from, MrpType::kReject, static_cast<std::uint16_t>(reason), std::move(named));
  }
  // The sender's switch reports a receiver with the count `times` of its packets.
  void report(std::uint32_t receiver, std::uint8_t flags, std::uint32_t times = 0) {
    send(kSwitch, MrpType::kReport, 0, {{test::host(receiver), wire::Qpn(times), flags}});
  }

  void deliver(const Datagram& d) {
    switch (d.to) {
      case To::kSendersSwitch:
        return at_senders_switch(d.message);
      case To::kRack:
        return at_rack(d.message, d.rack);
      case To::kReceiver:
        return at_receiver(d);
      case To::kSender:
        sender.on_message(now, d.from, d.message, outbox_);
        return collect();
    }
  }
  // Delivers all messages and their answers, in order.
  void run_until_idle() {
    while (!under_way.empty()) {
      const Datagram d = under_way.front();
      under_way.pop_front();
      if (!lose || !lose(d)) deliver(d);
    }
  }
  // Lets time pass from deadline to deadline up to `until`, everything delivered at once.
  void run(Instant until) {
    run_until_idle();
    while (sender.deadline() <= until) {
      now = sender.deadline();
      tick();
      run_until_idle();
    }
    now = until;
  }

  Instant now = kStart;
  SenderRegistration sender;
  std::map<Ipv4, ReceiverMembership> receivers;
  std::deque<Datagram> under_way;
  std::function<bool(const Datagram&)> lose;
  std::function<bool(Ipv4)> connects;  // unset: every queue pair connects
  std::map<Ipv4, int> connect_calls;
  std::map<Ipv4, std::uint16_t> answered_epoch;  // the newest INSTALL's that each has answered
  bool is_taken = false;                         // another group has the virtual QPN
  std::vector<SenderGroupMessage> sent;          // all that the sender has sent

 private:
  SenderGroupMessage of_group(MrpType type, std::uint16_t flags, std::vector<MrpMember> named) {
    SenderGroupMessage m;
    m.header.type = type;
    m.header.flags = flags;
    m.header.epoch = sender.epoch();
    m.header.mcst_id = test::host(0);
    m.header.instance = kInstance;
    m.virtual_qpn = sender.virtual_qpn();
    m.sender_qpn = sender_config().qpn;
    for (const MrpMember& each : named) m.add(each);
    return m;
  }
  std::uint32_t rack_of(Ipv4 host) const {
    return (host.value() - test::host(0).value()) % shape_.racks;
  }
  static SenderGroupMessage with(const SenderGroupMessage& m, std::vector<MrpMember> list,
                                 std::uint64_t share) {
    SenderGroupMessage part = m;
    part.receiver_count = part.region_count = 0;
    for (const MrpMember& each : list) part.add(each);
    part.share = share;
    return part;
  }
  // `share` in `parts` parts; the first has the remainder.
  static std::uint64_t part_of(std::uint64_t share, std::size_t parts, std::size_t part) {
    return share / parts + (part == 0 ? share % parts : 0);
  }

  void at_senders_switch(const SenderGroupMessage& m) {
    if (is_taken) return reject(kSwitch, MrpReject::kIdInUse);
    std::map<std::uint32_t, std::vector<MrpMember>> racks;
    for (const MrpMember& each : m.list()) racks[rack_of(each.host)].push_back(each);
    std::size_t branches = 0, branch = 0;
    for (const auto& [rack, list] : racks) branches += rack == 0 ? list.size() : 1;
    for (const auto& [rack, list] : racks) {
      if (rack == 0) {
        for (const MrpMember& each : list) {
          send_to(each, with(m, {each}, part_of(m.share, branches, branch++)));
        }
        continue;
      }
      const std::uint64_t share = part_of(m.share, branches, branch++);
      for (std::uint32_t spine = 0; spine < shape_.spines; ++spine) {
        under_way.push_back(
            {To::kRack, m.sender(), {}, rack, with(m, list, part_of(share, shape_.spines, spine))});
      }
    }
  }
  void at_rack(const SenderGroupMessage& m, std::uint32_t) {
    const auto list = m.list();
    for (std::size_t i = 0; i < list.size(); ++i) {
      send_to(list[i], with(m, {list[i]}, part_of(m.share, list.size(), i)));
    }
  }
  void send_to(const MrpMember& receiver, const SenderGroupMessage& m) {
    under_way.push_back({To::kReceiver, m.sender(), receiver.host, 0, m});
  }
  void at_receiver(const Datagram& d) {
    ReceiverMembership& receiver = receivers.at(d.host);
    Outbox answers;
    if (receiver.on_message(now, d.message, answers) == ReceiverMembership::Task::kConnect) {
      ++connect_calls[d.host];
      receiver.connected(!connects || connects(d.host), answers);
    }
    for (const SenderGroupMessage& m : answers.of_sender_groups) {
      const bool is_of_install = m.header.type == MrpType::kInstalled &&
                                 m.header.flags == static_cast<std::uint16_t>(MrpType::kInstall);
      if (is_of_install) answered_epoch[d.host] = m.header.epoch;
      under_way.push_back({To::kSender, d.host, {}, 0, m});
    }
  }
  void collect() {
    for (const SenderGroupMessage& m : outbox_.of_sender_groups) {
      sent.push_back(m);
      if (m.header.type != MrpType::kQuery) {
        under_way.push_back({To::kSendersSwitch, host(0), {}, 0, m});
      }
    }
    outbox_.clear();
  }

  const SenderNetworkShape shape_;
  Outbox outbox_;
};

}  // namespace cepheus::mrp::test
