// The sender of a sender group, as it registers: the controller's machine on virtual time.
#pragma once

#include "controller/sender_registration.h"
#include "fabric-sim/checked/group_leader.h"
#include "fabric-sim/checked/mcrdma/sender_group_member.h"

namespace cepheus::sim {

class SenderLeader final : public GroupLeader {
 public:
  // `members`: all of the group, there before start().
  SenderLeader(Simulator& simulator, Host& host,
               const std::vector<std::unique_ptr<GroupMember>>& members, GroupLedger& ledger,
               const ScenarioPlan& plan, Findings& findings);

  void start(const std::vector<wire::MrpMember>& members) override;
  void unregister() override;
  bool is_active() const override { return registration_.is_active(); }

  void on_event(Instant now, std::uint64_t what) override;
  void on_datagram(Instant, wire::Ipv4, const wire::MrpMessage&) override {}
  void on_sender_group(Instant now, wire::Ipv4 from,
                       const wire::SenderGroupMessage& message) override;

 protected:
  bool has_ended() const override {
    return registration_.state() == mrp::SenderRegistration::State::kGone;
  }

 private:
  SenderGroupMember& member(std::size_t number) const {
    return static_cast<SenderGroupMember&>(*members_[number]);
  }
  void note_evictions();
  void carry_out();

  Simulator& simulator_;
  Host& host_;
  const std::vector<std::unique_ptr<GroupMember>>& members_;
  GroupLedger& ledger_;
  Findings& findings_;
  mrp::SenderRegistration registration_;
  mrp::Outbox actions_;
  std::vector<bool> is_out_;  // by member
  Instant timer_at_ = wire::kNever;
};

}  // namespace cepheus::sim
