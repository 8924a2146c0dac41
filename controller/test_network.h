// One leader and its members joined by a lossy network on virtual time: the switch of these tests
// passes on every datagram to the hosts it names, as real ones do, and knows nothing else.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "controller/membership.h"
#include "controller/registration.h"

namespace cepheus::mrp::test {

using namespace std::chrono_literals;

inline constexpr Instant kStart{Duration{1'000'000'000}};
inline constexpr McstId kGroup{198, 18, 3, 4};
inline constexpr std::uint16_t kEpoch = 7;
inline constexpr std::uint32_t kInstance = 0xCAFE;

inline Ipv4 host(std::uint32_t i) { return Ipv4(Ipv4(10, 0, 0, 0).value() + i + 1); }
inline MrpMember member(std::uint32_t i) {
  return {host(i), wire::Qpn(0x11 + i), 0, static_cast<std::uint16_t>(40000 + i), 0x70CE0000 + i};
}
// As it speaks of itself.
inline MrpMember bare(std::uint32_t i) { return {host(i), wire::Qpn(0x11 + i)}; }
inline std::vector<MrpMember> members(std::uint32_t n) {
  std::vector<MrpMember> list;
  for (std::uint32_t i = 0; i < n; ++i) list.push_back(member(i));
  return list;
}
inline RegistrationConfig leader_config() {
  RegistrationConfig config;
  config.host = host(0);
  config.instance = kInstance;
  return config;
}

// Host 0 leads; hosts 1 to n-1 are members whose queue pairs connect at once (or not, see
// `connects`).
class Network {
 public:
  struct Datagram {
    Ipv4 from, to;
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
  void tick() {
    leader.on_timer(now, actions_);
    collect(host(0));
  }
  void deliver(const Datagram& d) {
    if (d.to == host(0)) {
      leader.on_message(now, d.from, d.message, actions_);
      collect(host(0));
      return;
    }
    for (auto& [address, membership] : hosts) {
      if (d.to == kGroup ? serves_groups : d.to == address) give(membership, address, d);
    }
  }
  // Delivers all that is under way, and what that causes, in order.
  void settle() {
    while (!under_way.empty()) {
      const Datagram d = under_way.front();
      under_way.pop_front();
      if (!lose || !lose(d)) deliver(d);
    }
  }
  // Lets time pass from deadline to deadline up to `until`, everything delivered at once.
  void run(Instant until) {
    settle();
    while (leader.deadline() <= until) {
      now = leader.deadline();
      tick();
      settle();
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
  bool serves_groups = true;           // false: nothing addressed to the group gets anywhere
  std::map<Ipv4, int> connect_calls;
  std::size_t sent = 0;

 private:
  void give(Membership& membership, Ipv4 address, const Datagram& d) {
    Actions answers;
    const auto task = membership.on_message(now, d.from, d.message, answers);
    if (task == Membership::Task::kConnect) {
      ++connect_calls[address];
      membership.connected(now, !connects || connects(address), answers);
    }
    for (const Outgoing& o : answers.messages) push(address, o);
  }
  void collect(Ipv4 from) {
    for (const Outgoing& o : actions_.messages) push(from, o);
    actions_.clear();
  }
  void push(Ipv4 from, const Outgoing& o) {
    under_way.push_back({from, o.to, o.message});
    ++sent;
  }

  Actions actions_;
};

}  // namespace cepheus::mrp::test
