// The leader of a group: the controller's registration on virtual time.
#pragma once

#include <vector>

#include "controller/registration.h"
#include "fabric-sim/checked/findings.h"
#include "fabric-sim/checked/group_ledger.h"
#include "fabric-sim/checked/group_member.h"

namespace cepheus::sim {

class GroupLeader final : public Actor, public DatagramClient {
 public:
  GroupLeader(Simulator& simulator, Host& host, GroupMember& own_member, const GroupLedger& ledger,
              const TransportPlan& transport, Findings& findings);

  void start(const std::vector<wire::MrpMember>& members);
  void unregister();
  // Its host is gone, and the program with it.
  void die() { dead_ = true; }
  bool is_active() const { return registration_.state() == mrp::Registration::State::kActive; }
  // Its host died with it, or all is done.
  bool is_gone() const { return dead_ || registration_.state() == mrp::Registration::State::kGone; }

  void on_event(Instant now, std::uint64_t what) override;
  void on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) override;

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
  bool dead_ = false;
};

}  // namespace cepheus::sim
