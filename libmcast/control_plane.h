// Registration of all groups of a context: takes datagrams, runs timers, sends the answers. Under
// the state lock.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "controller/mcst_allocator.h"
#include "controller/registration.h"
#include "libmcast/control_channel.h"
#include "libmcast/group.h"
#include "wire/mrp_key.h"

namespace cepheus::mcast {

struct ControlPlaneConfig {
  wire::Ipv4 host;
  std::uint32_t instance = 0;  // this process, among all that ever lead from this host
  wire::Duration timeout{};
  wire::Ipv4Prefix pool;
  std::uint64_t seed = 0;                             // order of group addresses
  std::shared_ptr<const wire::MrpKey> key = nullptr;  // the fabric's; null: nothing is signed
  std::optional<wire::Duration> silence = {};         // mrp::RegistrationConfig::silence
  wire::Duration evict_after = wire::times::kEvict;   // of a lagging member's silence
};

class ControlPlane {
 public:
  ControlPlane(const ControlPlaneConfig& config, std::unique_ptr<ControlChannel> channel);

  void add(Group& group);
  // Forgets the group. If it led, this object unregisters it until the members have confirmed.
  void remove(wire::Instant now, Group& group);
  // `regions`: those of a sender group's receivers; other groups have none here. If another leader
  // has the address, the group ends (MCAST_ERR_ID_IN_USE). It does not draw a new address, because
  // members have connected their queue pairs to this one.
  Expected<void> lead(wire::Instant now, Group& group, std::span<const mrp::MrpMember> members,
                      std::span<const wire::MrpRegion::Record> regions);

  // The group had an event of its own: sends its messages.
  void serve(wire::Instant now, Group& group);

  // This process's control port, for its members' names.
  std::uint16_t control_port() const { return channel_->port(); }
  // Takes arrived datagrams and runs due timers. Returns the number of both.
  unsigned poll(wire::Instant now);
  // Looks for stuck groups, see GroupEngine::look().
  void look(wire::Instant now);
  wire::Instant deadline() const;
  // Some group waits for a datagram or a repeat: poll() often.
  bool is_busy() const { return busy_; }
  bool is_unregistering() const { return !leaving_.empty() || !leaving_senders_.empty(); }
  // True if a group, or the switches of an ended one, need this process while the program makes no
  // calls.
  bool is_on_duty() const;

 private:
  Expected<void> lead_as_sender(wire::Instant now, Group& group,
                                std::span<const mrp::MrpMember> members,
                                std::span<const wire::MrpRegion::Record> regions);
  Expected<void> check_virtual_qpn(const Group& group) const;
  void take_in(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message);
  void take_in(wire::Instant now, wire::Ipv4 from, const wire::SenderGroupMessage& message);
  unsigned run_timers(wire::Instant now);
  unsigned publish_due(wire::Instant now);
  unsigned run_leaving(wire::Instant now);
  void refuse_unknown(const wire::MrpMessage& message);
  void answer_for_unknown_group(wire::Ipv4 from, const wire::MrpMessage& message);
  int send(wire::Ipv4 to, std::span<const std::uint8_t> message);
  void send_all(mrp::Outbox& outbox);
  template <typename Event, typename... Args>
  void pass(Group& group, Event event, const Args&... args) {
    group.handle(event, args...);
    send_all(group.outbox());
  }
  void note_failed_sends(Group& group);
  void update_busy();
  Group* find(const wire::MrpMember& member) const;

  const ControlPlaneConfig config_;
  const std::unique_ptr<ControlChannel> channel_;
  mrp::McstAllocator allocator_;
  std::vector<Group*> groups_;
  std::vector<std::unique_ptr<mrp::Registration>> leaving_;
  std::vector<std::unique_ptr<mrp::SenderRegistration>> leaving_senders_;
  mrp::Outbox outbox_;  // of no group here
  bool busy_ = false;
  // Of the last datagram to a group: 0 once it was sent, else an errno. A full queue changes nothing.
  int send_error_ = 0;
};

}  // namespace cepheus::mcast
