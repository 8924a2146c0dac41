// One member of a multicast group as a program of a simulated host: the engine of libmcast's groups
// (libmcast/engine/group_engine.h) over a queue pair of the host's NIC.
//
// It registers the group, or answers its leader, and connects the queue pair. A derived class sends
// and receives over the queue pair.
#pragma once

#include <optional>
#include <span>

#include "fabric-sim/core/connection.h"
#include "libmcast/engine/group_engine.h"

namespace cepheus::sim {

class GroupProgram : public Actor, public DatagramClient {
 public:
  struct Config {
    rnic::Qpn qpn;  // in INIT
    std::uint16_t control_port = 0;
    std::uint32_t token = 0;
    bool is_sender_group = false;
    std::optional<wire::MrpReduction> reduction = {};  // of a reduction group
    QpTimers timers = {};
    wire::Duration receiver_time_limit = wire::times::kReceiverGivesUp;
    wire::Duration sender_lives = wire::times::kSenderLives;
    wire::Duration requests_after = wire::times::kSenderRequests;
    mcast::Presence::Pace presence = {};
    mrp::Publisher regions{};
  };

  GroupProgram(Simulator& simulator, Host& host, const Config& config);
  GroupProgram(const GroupProgram&) = delete;
  GroupProgram& operator=(const GroupProgram&) = delete;

  const mrp::MrpMember& member() const { return group().member(); }
  // Makes this member the leader; throws std::logic_error if the member list is invalid.
  void lead(const mrp::RegistrationConfig& config, const mrp::McstAllocator::Lease& lease,
            std::span<const mrp::MrpMember> members);
  // ... or the sender of a sender group.
  void lead_as_sender(const mrp::SenderConfig& config, std::span<const mrp::MrpMember> members,
                      std::span<const wire::MrpRegion::Record> regions);
  // Ends the group as its leader; takes virtual time until has_left().
  void leave();
  bool has_left() const { return is_leaving_ && engine_.role().has_left(); }
  bool is_active() const { return group().state() == MCAST_GROUP_ACTIVE && !is_leaving_; }

  void on_event(Instant now, std::uint64_t what) override;
  void on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) override;
  void on_sender_group(Instant now, wire::Ipv4 from,
                       const wire::SenderGroupMessage& message) override;

 protected:
  // Derived classes handle other events, and pass this one on.
  static constexpr std::uint64_t kGroupTimer = ~std::uint64_t{0};

  // Called after each call of the engine, when its messages have been sent: its state may have
  // changed.
  virtual void on_change(Instant now) = 0;

  Simulator& simulator() const { return simulator_; }
  Instant now() const { return simulator_.now(); }
  Host& host() const { return host_; }
  rnic::Qpn qpn() const { return member().qpn; }
  mcast::GroupEngine& engine() { return engine_; }
  const mcast::GroupEngine& engine() const { return engine_; }
  const mcast::GroupState& group() const { return engine_.group(); }
  mcast::PairSync& sync() { return engine_.work().sync(); }
  const mcast::PairSync& sync() const { return group().work().sync(); }
  // Calls of the engine add to this before carry_out().
  mcast::GroupOutput& out() { return out_; }
  void carry_out();
  // Only the actions.
  void perform();
  // If the engine needs the queue pair's PSNs.
  void read_psns_if_wanted();
  bool is_open() const { return is_open_; }
  // Ignores datagrams and timers from now on.
  void close() { is_open_ = false; }
  // Connects to `remote`, up to RTS.
  virtual void connect(const mcast::RemoteEnd& remote);

 private:
  // For programs that set their PSNs.
  virtual void take_step(mcast::PairSync::Step step);
  virtual void post_kept() {}

  Simulator& simulator_;
  Host& host_;
  const QpTimers timers_;
  mcast::GroupEngine engine_;
  mcast::GroupOutput out_;
  Instant timer_at_ = wire::kNever;
  bool is_leaving_ = false, is_open_ = true;
};

}  // namespace cepheus::sim
