// The end of sender groups at a switch, by REMOVE (docs/protocol.md, "Sender groups"): deletes the
// group's records, and passes the REMOVE on to present and former receivers.
//
// A REMOVE needs no record: it is repeated, and the switches behind this one may have missed it.
#pragma once

#include <span>

#include "switch-emulator/engine/mcrdma/branch_messages.h"
#include "switch-emulator/engine/mcrdma/sender_table.h"
#include "wire/roce.h"

namespace cepheus::fabric {

class Remover {
 public:
  Remover(const SwitchConfig& config, const Routes& routes, SenderTable& groups,
          BranchMessages& branch_messages)
      : config_(config), routes_(routes), groups_(groups), branch_messages_(branch_messages) {}

  void on_remove(Call& call, const wire::UdpDatagram& datagram,
                 const wire::SenderGroupMessage& message);

 private:
  void branch_to_reachable(const Call& call, SenderGroup& group);
  void remove_former(Call& call, const SenderGroup& gone, std::span<const wire::MrpMember> former);

  const SwitchConfig& config_;
  const Routes& routes_;
  SenderTable& groups_;
  BranchMessages& branch_messages_;
};

}  // namespace cepheus::fabric
