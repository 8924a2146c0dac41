// The leader of a group: the controller's registration on virtual time.
#pragma once

#include <vector>

#include "controller/registration.h"
#include "fabric-sim/checked/findings.h"
#include "fabric-sim/checked/group_ledger.h"
#include "fabric-sim/checked/group_member.h"

namespace cepheus::sim {

// Whoever registers a group, and ends it.
class GroupLeader : public Actor, public DatagramClient {
 public:
  virtual void start(const std::vector<wire::MrpMember>& members) = 0;
  virtual void unregister() = 0;
  // Its host is gone, and the program with it.
  void die() { dead_ = true; }
  virtual bool is_active() const = 0;
  // Its host died with it, or all is done.
  bool is_gone() const { return dead_ || has_ended(); }

 protected:
  virtual bool has_ended() const = 0;
  bool is_dead() const { return dead_; }

 private:
  bool dead_ = false;
};

// ... of a group with a McstID.
class McstLeader final : public GroupLeader {
 public:
  McstLeader(Simulator& simulator, Host& host, GroupMember& own_member, const GroupLedger& ledger,
             const TransportPlan& transport, Findings& findings);

  void start(const std::vector<wire::MrpMember>& members) override;
  void unregister() override;
  bool is_active() const override {
    return registration_.state() == mrp::Registration::State::kActive;
  }

  void on_event(Instant now, std::uint64_t what) override;
  void on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) override;

 protected:
  bool has_ended() const override {
    return registration_.state() == mrp::Registration::State::kGone;
  }

 private:
  void carry_out();

  Simulator& simulator_;
  Host& host_;
  GroupMember& own_member_;
  const GroupLedger& ledger_;
  Findings& findings_;
  mrp::Registration registration_;
  mrp::Outbox actions_;
  Instant timer_at_ = wire::kNever;
};

}  // namespace cepheus::sim
