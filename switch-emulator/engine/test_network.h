// Switches, their links and hosts for tests: the test passes frames and moves the time.
//
// The packets that reach a host are kept as text, with PSNs relative to the group's start PSN:
// "data 3", "ack 3", "nak 3", "rnr 3 t1", "fatal 3 c1", "cnp", "activate e1", "reject e1 no route
// 10.0.0.9". `lose` erases frames. After each step the switches are checked for consistency, and
// every frame for its ICRC.
#pragma once

#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "switch-emulator/engine/switch.h"
#include "switch-emulator/engine/test_payloads.h"
#include "switch-emulator/engine/views.h"
#include "wire/announcement.h"
#include "wire/mrp.h"
#include "wire/publication.h"
#include "wire/roce.h"

namespace cepheus::fabric {

using Texts = std::vector<std::string>;
inline constexpr std::uint32_t kUsualFrame = 1514;  // bytes, with an MTU of 1500

class TestNetwork {
 public:
  static constexpr McstId kGroup{198, 18, 0, 7};
  static constexpr std::size_t kNone = ~std::size_t{0};

  // Build: switches first, then links and hosts, then start(), which makes routes over all shortest
  // paths.
  std::size_t add_switch();
  std::size_t add_host(std::size_t at_switch);
  void link(std::size_t a, std::size_t b);
  SwitchConfig& config(std::size_t s) { return switches_[s].config; }
  void start();

  static Ipv4 ip(std::size_t host) {
    return Ipv4(Ipv4(10, 0, 0, 1).value() + static_cast<std::uint32_t>(host));
  }
  static Qpn qpn(std::size_t host) { return Qpn(static_cast<std::uint32_t>(0x100 + 0x11 * host)); }
  Switch& sw(std::size_t s) { return *switches_[s].engine; }
  std::size_t switch_count() const { return switches_.size(); }
  std::uint64_t count(Counter c, std::size_t s = 0) const;
  GroupView view(std::size_t s = 0) const;     // of the only table there
  PathView path_view(std::size_t host) const;  // at that host's leaf
  PortId port_of(std::size_t host) const { return PortId(hosts_[host].port); }
  PortId port_between(std::size_t from, std::size_t to) const;

  // Registration. All hosts are members by default; `leader` sends to its leaf.
  void register_group(std::size_t leader, std::uint16_t epoch,
                      std::vector<std::size_t> members = {}, std::uint16_t flags = 0);
  void control(std::size_t leader, wire::MrpType type, std::uint16_t epoch,
               const std::vector<wire::MrpMember>& members = {}, std::uint32_t instance = 1);
  // A member's CONFIRM.
  void confirm(std::size_t host, wire::MrpType step, bool host_sync = false);
  // Of the first registration and its leader, naming `members`.
  static wire::MrpMessage message_about(wire::MrpType type,
                                        const std::vector<wire::MrpMember>& members);
  // Any registration datagram of a host, to its McstID.
  void send_message(std::size_t host, const wire::MrpMessage& message);
  std::vector<std::uint8_t> message_bytes(std::size_t host, const wire::MrpMessage& message) const;
  // The same datagram's bytes, part `seq` of `total`, to be delivered by `inject_at`.
  static std::vector<std::uint8_t> control_bytes(
      std::size_t leader, wire::MrpType type, std::uint16_t epoch,
      std::span<const wire::MrpMember> members, std::uint32_t instance = 1, std::uint16_t seq = 0,
      std::uint16_t total = 1, const wire::MrpKey* key = nullptr, std::uint16_t flags = 0,
      const std::optional<wire::MrpReduction>& reduction = {}, McstId id = kGroup);
  void inject_at(std::size_t s, PortId port, std::vector<std::uint8_t> bytes);
  // REGISTER and ACTIVATE; discards the messages to hosts.
  void set_up_group(std::size_t leader = 0, std::uint16_t epoch = 1);
  wire::MrpMember member(std::size_t host) const {
    return {ip(host), qpn(host), 0, control_port(host)};
  }
  // Port of a host's one process.
  static std::uint16_t control_port(std::size_t host) {
    return static_cast<std::uint16_t>(40000 + host);
  }

  // RoCE from a host. PSNs are relative to the group's start, in the host's own numbering.
  void data(std::size_t host, std::int64_t psn, bool last = true);
  void message(std::size_t host, std::int64_t first, std::int64_t final_psn);
  void request(std::size_t host, wire::Opcode opcode, std::int64_t psn);
  void ack(std::size_t host, std::int64_t psn) { ack({host}, psn); }
  void ack(std::initializer_list<std::size_t> hosts, std::int64_t psn);  // each of them
  void nak(std::size_t host, std::int64_t psn);
  // A host publishes its regions, as its publication `serial`.
  void publish(std::size_t host, std::uint16_t serial, const std::vector<wire::MrpRegion>& regions,
               std::uint16_t flags = 0);
  // A host announces the targets of the WRITE behind this packet.
  void announce(std::size_t host, std::int64_t psn,
                const std::vector<wire::AnnouncedTarget>& targets);
  // A WRITE's first packet, which is all of it unless `only` is false: `length` bytes altogether.
  void write(std::size_t host, std::int64_t psn, std::uint16_t region, std::uint64_t offset,
             std::uint32_t length, bool only = true);
  void rnr(std::size_t host, std::int64_t psn, std::uint8_t timer = 1);
  void feedback(std::size_t host, std::int64_t psn, wire::AckKind kind, std::uint8_t value);
  void cnp(std::size_t host);
  void echo(std::size_t host, std::int64_t psn);  // an ACK with a congestion notification
  // Any frame from a host's port, unchanged.
  void inject(std::size_t host, const Frame& frame);
  void inject_bytes(std::size_t host, std::vector<std::uint8_t> bytes);
  Frame make_frame(std::size_t host, const wire::RoceHeaders& headers,
                   std::size_t payload_bytes = 0);
  wire::RoceHeaders headers_from(std::size_t host, wire::Opcode opcode, std::int64_t psn) const;

  Texts inbox(std::size_t host);  // since the last call
  // Member `at` of the last registration message to the host.
  wire::MrpMember last_report(std::size_t host, std::size_t at = 0) const {
    return hosts_[host].last_members.at(at);
  }
  std::size_t last_report_size(std::size_t host) const { return hosts_[host].last_members.size(); }
  const std::vector<std::vector<std::uint8_t>>& frames(std::size_t host) const {
    return hosts_[host].frames;
  }
  void clear();

  // Erases frames between switches for which it returns true. (from, to, text)
  std::function<bool(std::size_t, std::size_t, const std::string&)> lose;
  std::function<void(std::size_t, std::size_t, const wire::RoceHeaders&)>
      on_trunk;  // called for RoCE frames there
  std::function<void(std::size_t, std::size_t, const wire::MrpMessage&)>
      on_registration;  // ... for registration messages there

  void advance(Duration d);  // moves the time and serves every deadline on the way
  void set_port(std::size_t s, PortId port, bool up);
  void restart(std::size_t s);  // the switch forgets its groups
  Instant now() const { return now_; }

  TestPayloads payloads;                   // of frames that switches handle or hold
  wire::Icrc icrc = wire::Icrc::kPresent;  // of frames from hosts
  std::map<std::uint16_t, std::set<std::size_t>> registered;  // hosts, by epoch
  const wire::MrpKey* sign_with = nullptr;                    // instead of the fabric's key
  std::uint8_t tos = 0;                                       // of all frames from hosts
  std::optional<wire::MrpReduction> reduction;  // of the groups that register_group() registers
  bool listens = true;                          // frames to a host must be for the process there
  std::uint16_t epoch = 1;                      // of the group: sets the start PSN of texts
  Psn start_psn() const { return wire::group_start_psn(kGroup, epoch); }
  std::string text(const Frame& frame) const;

 private:
  struct Peer {
    std::size_t host = kNone, switch_no = kNone;
    std::uint16_t port = 0;  // at the peer switch
  };
  struct SwitchNode {
    SwitchConfig config;
    std::vector<Peer> peers;  // by port
    std::unique_ptr<Switch> engine;
  };
  struct HostNode {
    std::size_t at = 0;
    std::uint16_t port = 0;
    Texts inbox;
    std::vector<std::vector<std::uint8_t>> frames;
    std::vector<wire::MrpMember> last_members = {};  // of the last registration message
  };
  struct Passing {
    std::size_t to;
    std::uint16_t port;
    std::vector<std::uint8_t> bytes;
    wire::Icrc icrc;
  };

  // The fabric's key, if it has one: registration is signed then.
  const wire::MrpKey* key() const { return switches_[0].config.mrp_key.get(); }
  const wire::MrpKey* hosts_key() const { return sign_with != nullptr ? sign_with : key(); }
  std::vector<std::size_t> distances_from(std::size_t s) const;
  void arrive(const Passing& passing);
  void run();
  void take(std::size_t s, SwitchOutput& actions);

  std::vector<SwitchNode> switches_;
  std::vector<HostNode> hosts_;
  std::deque<Passing> passing_;
  Instant now_{std::chrono::seconds(1)};
};

// One switch with `hosts` hosts and, if `ready`, the group of all of them, led by host 0.
std::unique_ptr<TestNetwork> make_star(std::size_t hosts, bool ready = true,
                                       const std::function<void(SwitchConfig&)>& change = {});
// ... in which host 0 has sent packets 0 to `last`, and no receiver has answered.
std::unique_ptr<TestNetwork> make_star_amid(std::size_t hosts, std::int64_t last,
                                            const std::function<void(SwitchConfig&)>& change = {});
// Two switches, hosts 0 and 1 at the first, 2 and 3 at the second.
std::unique_ptr<TestNetwork> make_pair_of_switches(
    bool ready = true, const std::function<void(SwitchConfig&)>& change = {});
// Of the last packet to a host.
wire::Reth reth_at(const TestNetwork& net, std::size_t host);
bool requests_ack(const TestNetwork& net, std::size_t host);

}  // namespace cepheus::fabric
