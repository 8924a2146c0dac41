// A sender or receiver of a sender group on virtual time.
#pragma once

#include "controller/receiver_membership.h"
#include "controller/sender_registration.h"
#include "fabric-sim/checked/group_member.h"

namespace cepheus::sim {

class SenderGroupMember final : public GroupMember {
 public:
  SenderGroupMember(Simulator& simulator, Host& host, GroupLedger& ledger, std::size_t index,
                    const TransportPlan& transport, std::uint64_t seed)
      : GroupMember(simulator, host, ledger, index, transport, seed), membership_(identity()) {}

  // The sender's: all receivers are there.
  void begin(const mrp::SenderRegistration& registration);
  // Where the sender's WRITEs go at this receiver; empty without WRITEs.
  std::optional<wire::MrpRegion> region();

  void on_datagram(Instant, wire::Ipv4, const wire::MrpMessage&) override {}
  void on_sender_group(Instant now, wire::Ipv4 from,
                       const wire::SenderGroupMessage& message) override;

 protected:
  void complain() override {}  // receivers have no sends

 private:
  mrp::ReceiverMembership membership_;
  mrp::Outbox answers_;
  bool is_connected_ = false;
};

}  // namespace cepheus::sim
