// One leader and its members joined by a lossy network on virtual time: the switch of these tests
// passes on every datagram to the hosts it names, or to all, as real ones do, and knows nothing
// else. If `merges`, it keeps CONFIRMs back until merge() or until nothing else is under way.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "controller/membership.h"
#include "controller/registration.h"

namespace cepheus::mrp::test {

using namespace std::chrono_literals;

inline constexpr Instant kStart{Duration{1'000'000'000}};
inline constexpr McstId kGroup{198, 18, 3, 4};
inline constexpr std::uint16_t kEpoch = 7;
inline constexpr std::uint32_t kInstance = 0xCAFE;

inline constexpr Ipv4 kSwitch{10, 255, 0, 1};

inline Ipv4 host(std::uint32_t i) { return Ipv4(Ipv4(10, 0, 0, 0).value() + i + 1); }
inline MrpMember member(std::uint32_t i) {
  return {host(i), wire::Qpn(0x11 + i), 0, static_cast<std::uint16_t>(40000 + i), 0x70CE0000 + i};
}
// A member's name for itself.
inline MrpMember bare(std::uint32_t i) { return {host(i), wire::Qpn(0x11 + i)}; }
inline std::vector<MrpMember> members(std::uint32_t n) {
  std::vector<MrpMember> list;
  for (std::uint32_t i = 0; i < n; ++i) list.push_back(member(i));
  return list;
}
inline RegistrationConfig leader_config(Duration timeout = times::kRegister,
                                        std::optional<Duration> silence = {}) {
  RegistrationConfig config;
  config.host = host(0);
  config.instance = kInstance;
  config.timeout = timeout;
  config.silence = silence;
  return config;
}

// Host 0 leads. Hosts 1 to n-1 are members. Their queue pairs connect at once, unless
// `connects` is false.
class Network {
 public:
  struct Datagram {
    Ipv4 from;
    MrpMessage message;
  };

  explicit Network(std::uint32_t n, RegistrationConfig config = leader_config())
      : leader(config, kGroup, kEpoch), all(mrp::test::members(n)) {
    for (std::uint32_t i = 1; i < n; ++i) hosts.emplace(host(i), Membership(member(i)));
  }

  wire::Result<void> start() {
    auto result = leader.start(now, all, actions_);
    collect(host(0));
    return result;
  }
  void unregister() {
    leader.unregister(now, actions_);
    collect(host(0));
  }
  void release() {
    leader.release(now, actions_);
    collect(host(0));
  }
  void tick() {
    leader.on_timer(now, actions_);
    collect(host(0));
  }
  void deliver(const Datagram& d) {
    if (wire::is_for_leader(d.message.header.type)) {
      leader.on_message(now, d.from, d.message, actions_);
      collect(host(0));
      return;
    }
    // GIVE_UP needs no table of the group's.
    const bool goes = serves_groups || d.message.header.type == wire::MrpType::kGiveUp;
    for (auto& [address, membership] : hosts) {
      if (goes && address != unplugged && names(d.message, address)) {
        give(membership, address, d);
      }
    }
  }
  // The switch sends all held CONFIRMs as one.
  void merge() {
    for (const Datagram& d : kept_back_) under_way.push_back(d);
    sent += kept_back_.size();
    kept_back_.clear();
  }
  // Delivers all messages and their answers, in order.
  void run_until_idle() {
    for (;;) {
      if (under_way.empty()) merge();
      if (under_way.empty()) return;
      const Datagram d = under_way.front();
      under_way.pop_front();
      if (!lose || !lose(d)) deliver(d);
    }
  }
  // Lets time pass from deadline to deadline up to `until`, everything delivered at once.
  void run(Instant until) {
    run_until_idle();
    while (leader.deadline() <= until) {
      now = leader.deadline();
      tick();
      run_until_idle();
    }
    now = until;
  }

  Instant now = kStart;
  Registration leader;
  std::vector<MrpMember> all;
  std::map<Ipv4, Membership> hosts;
  std::deque<Datagram> under_way;
  std::function<bool(const Datagram&)> lose;
  std::function<bool(Ipv4)> connects;  // unset: every queue pair connects
  bool merges = false;
  Ipv4 unplugged;             // nothing reaches it, nothing comes from it
  bool serves_groups = true;  // false: nothing addressed to the group gets anywhere
  std::map<Ipv4, int> connect_calls;
  std::size_t sent = 0;

 private:
  void give(Membership& membership, Ipv4 address, const Datagram& d) {
    Outbox answers;
    const auto task = membership.on_message(now, d.from, d.message, answers);
    if (task == Membership::Task::kConnect) {
      ++connect_calls[address];
      membership.connected(now, !connects || connects(address), answers);
    }
    for (const MrpMessage& m : answers.messages) push(address, m);
  }
  void collect(Ipv4 from) {
    for (const MrpMessage& m : actions_.messages) push(from, m);
    actions_.clear();
  }
  static bool names(const MrpMessage& message, Ipv4 address) {
    const auto list = message.list();
    return list.empty() || std::any_of(list.begin(), list.end(),
                                       [address](const MrpMember& m) { return m.host == address; });
  }
  void push(Ipv4 from, const MrpMessage& m) {
    if (from == unplugged) return;
    if (merges && m.header.type == wire::MrpType::kConfirm) return keep_back(m);
    under_way.push_back({from, m});
    ++sent;
  }

  void keep_back(const MrpMessage& m) {
    for (Datagram& d : kept_back_) {
      if (d.message.header != m.header || !d.message.add(m.members[0])) continue;
      if (m.path) d.message.narrow(*m.path);
      return;
    }
    kept_back_.push_back({kSwitch, m});
  }

  Outbox actions_;
  std::vector<Datagram> kept_back_;
};

// Its leader has sent REGISTER.
struct StartedNetwork : Network {
  explicit StartedNetwork(std::uint32_t n, const RegistrationConfig& config = leader_config())
      : Network(n, config) {
    EXPECT_TRUE(start());
  }
};

// A message of the group. CONNECT has a path without limits.
inline MrpMessage of_group(wire::MrpType type, const std::vector<MrpMember>& named = {}) {
  MrpMessage m;
  m.header = {.type = type, .epoch = kEpoch, .mcst_id = kGroup, .instance = kInstance};
  if (type == wire::MrpType::kConnect) m.path.emplace();
  for (const MrpMember& each : named) m.add(each);
  return m;
}
inline MrpMessage reject(wire::MrpReject reason, const std::vector<MrpMember>& named = {}) {
  MrpMessage m = of_group(wire::MrpType::kReject, named);
  m.header.flags = static_cast<std::uint16_t>(reason);
  return m;
}

// Of REGISTER, by a switch for these members.
inline MrpMessage confirm_for(std::vector<std::uint32_t> members) {
  MrpMessage m = reject(wire::MrpReject::kNone);
  m.header.type = wire::MrpType::kConfirm;
  m.header.flags = static_cast<std::uint16_t>(wire::MrpType::kRegister);
  for (const std::uint32_t i : members) m.add(bare(i));
  return m;
}
inline bool is(const Network::Datagram& d, wire::MrpType type) {
  return d.message.header.type == type;
}

}  // namespace cepheus::mrp::test
