// One member of a multicast group as a program of a simulated host: the engine of libmcast's groups
// (libmcast/engine/group_engine.h) over a queue pair of the host's NIC.
//
// It registers the group, or answers its leader, and connects the queue pair. A derived class sends
// and receives over the queue pair.
#pragma once

#include <span>

#include "fabric-sim/core/connection.h"
#include "libmcast/engine/group_engine.h"

namespace cepheus::sim {

class GroupProgram : public Actor, public DatagramClient, protected mcast::GroupPort {
 public:
  struct Config {
    rnic::Qpn qpn;  // in INIT
    std::uint16_t control_port = 0;
    std::uint32_t token = 0;
    bool is_sender_group = false;
    QpTimers timers = {};
    wire::Duration receiver_time_limit = wire::times::kReceiverGivesUp;
    wire::Duration sender_lives = wire::times::kSenderLives;
    wire::Duration requests_after = wire::times::kSenderRequests;
    mcast::Presence::Pace presence = {};
  };

  GroupProgram(Simulator& simulator, Host& host, const Config& config);
  GroupProgram(const GroupProgram&) = delete;
  GroupProgram& operator=(const GroupProgram&) = delete;

  const mrp::MrpMember& member() const { return engine_.member(); }
  // Makes this member the leader; throws std::logic_error if the member list is invalid.
  void lead(const mrp::RegistrationConfig& config, const mrp::McstAllocator::Lease& lease,
            std::span<const mrp::MrpMember> members);
  // ... or the sender of a sender group.
  void lead_as_sender(const mrp::SenderConfig& config, std::span<const mrp::MrpMember> members,
                      std::span<const wire::MrpRegion::Record> regions);
  // Ends the group as its leader; takes virtual time until has_left().
  void leave();
  bool has_left() const { return is_leaving_ && engine_.role().has_left(); }
  bool is_active() const { return engine_.state() == MCAST_GROUP_ACTIVE && !is_leaving_; }

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
  // Calls of the engine add to this before carry_out().
  mrp::Outbox& out() { return out_; }
  void carry_out();
  bool is_open() const { return is_open_; }
  // Ignores datagrams and timers from now on.
  void close() { is_open_ = false; }
  // Connects to `remote`, up to RTS.
  mcast::Expected<bool> connect(const mcast::RemoteEnd& remote) override;
  void on_failed() override;

 private:
  // For programs that have regions or set their PSNs.
  bool can_receive() const override { return true; }
  void on_sync_due() override {}  // sending programs call synchronise() instead
  void on_host_sync() override {}
  mcast::Expected<Psns> psns() override;
  mcast::Expected<bool> take_step(mrp::PsnSync::Step step, mcast::KeptReceives& kept) override;
  bool post_again(mcast::KeptReceives& kept) override { return kept.empty(); }
  void begin_regions(Instant, const wire::MrpHeader&) override {}
  bool confirm_regions(Instant, const wire::MrpHeader&) override { return false; }
  bool are_regions_in_force() const override { return true; }

  Simulator& simulator_;
  Host& host_;
  const QpTimers timers_;
  mcast::GroupEngine engine_;
  mrp::Outbox out_;
  Instant timer_at_ = wire::kNever;
  bool is_leaving_ = false, is_open_ = true;
};

}  // namespace cepheus::sim
