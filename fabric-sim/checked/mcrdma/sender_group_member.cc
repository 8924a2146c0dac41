#include "fabric-sim/checked/mcrdma/sender_group_member.h"

namespace cepheus::sim {

void SenderGroupMember::begin(const mrp::SenderRegistration& registration) {
  if (is_connected_ || !is_open()) return;
  is_connected_ = true;
  bring_up(registration.alias(), registration.virtual_qpn(), registration.start_psn());
  activate(false);
}

std::optional<wire::MrpRegion> SenderGroupMember::region() {
  if (!has_regions()) return std::nullopt;
  const wire::AnnouncedTarget& target = ledger().targets()[index()];
  return wire::MrpRegion{kRegion, target.rkey, target.virtual_address, target.length};
}

void SenderGroupMember::on_sender_group(Instant now, wire::Ipv4,
                                        const wire::SenderGroupMessage& message) {
  if (!is_open() || leads()) return;
  switch (membership_.on_message(now, message, answers_)) {
    case mrp::ReceiverMembership::Task::kConnect:
      bring_up(membership_.sender(), membership_.virtual_qpn(), membership_.start_psn());
      membership_.connected(true, answers_);
      break;
    case mrp::ReceiverMembership::Task::kEnded:
      stop_sending();
      break;
    case mrp::ReceiverMembership::Task::kActivated:
    case mrp::ReceiverMembership::Task::kNone:
      break;
  }
  for (const wire::SenderGroupMessage& m : answers_.of_sender_groups) {
    host().send_datagram(mrp::destination(m), m, ledger().plan().control_port());
  }
  answers_.clear();
}

}  // namespace cepheus::sim
