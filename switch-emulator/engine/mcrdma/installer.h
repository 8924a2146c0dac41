// The switch's half of sender groups' registration (docs/protocol.md, "Sender groups"): installs
// groups, finds branches, and deletes unused groups.
//
// No state waits for answers: a receiver's answer goes to the sender itself.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "switch-emulator/engine/mcrdma/branch_messages.h"
#include "switch-emulator/engine/mcrdma/remover.h"
#include "switch-emulator/engine/mcrdma/sender_answers.h"
#include "switch-emulator/engine/mcrdma/sender_table.h"
#include "switch-emulator/engine/registration/host_rate.h"
#include "wire/roce.h"

namespace cepheus::fabric {

class Installer {
 public:
  Installer(const SwitchConfig& config, const Routes& routes, SenderTable& groups,
            SenderAnswers& answers)
      : config_(config),
        routes_(routes),
        groups_(groups),
        answers_(answers),
        branch_messages_(config, routes, answers),
        remover_(config, routes, groups, branch_messages_),
        new_groups_(config, &SwitchConfig::register_rate),
        repeats_(config, &SwitchConfig::register_rate) {}

  // The first call is the start of this switch.
  void on_call(Instant now) { started_ = std::min(started_, now); }
  // A datagram to the registration port of a host. False: it is for a switch further on.
  bool on_datagram(Call& call, const Frame& frame, const wire::UdpHeaders& headers);
  // An INSTALL that this switch does not branch. One that measures goes on by all ways, with the path
  // MTU of this switch's ports; a later one is refused if its path MTU does not fit. False: the frame
  // is another one, or goes on as it is.
  bool on_passing(Call& call, const Frame& frame, const wire::UdpHeaders& headers) {
    const bool is_install = headers.udp.source_port == config_.mrp_port &&
                            config_.rules.least_path_mtu && !is_from_sender(call) &&
                            wire::MrpHeader::type_of(frame.payload()) == wire::MrpType::kInstall;
    return is_install && take_passing(call, frame, headers);
  }
  // A port has gone up or down, or a neighbour has other routes.
  void on_routes_changed(Call& call);
  // A host's port is down: reports it to the senders of its groups; its own groups have no sender.
  void on_port_down(Call& call, PortId down);
  // A program attaches there. It is the groups' sender only if it sends INSTALL.
  void on_port_up(Instant now, PortId up);
  // The configuration has changed: other ages.
  void on_settings() { due_ = Instant{}; }
  // Deletes groups that are neither used nor refreshed.
  void on_timer(Call& call);
  Instant deadline() const { return due_; }
  // on_datagram() has begun to merge this group's feedback from other receivers; null if none.
  const SenderGroup* take_merged() { return std::exchange(merged_, nullptr); }

 private:
  bool take_passing(Call& call, const Frame& frame, const wire::UdpHeaders& headers);
  bool refuse_too_long(Call& call, const wire::UdpDatagram& datagram,
                       const wire::SenderGroupMessage& message);
  void on_install(Call& call, const wire::UdpDatagram& datagram,
                  const wire::SenderGroupMessage& message);
  bool admits_repeat(const Call& call);
  std::vector<wire::MrpMember> erase_older(const SenderKey& key,
                                           const wire::SenderGroupMessage& message,
                                           const SenderGroup* kept);
  wire::MrpReject refuse(Call& call, const wire::SenderGroupMessage& message,
                         const SenderGroup* known);
  Instant expires(const SenderGroup& group) const;
  void forget(Call& call, const SenderGroup& group);

  const SwitchConfig& config_;
  const Routes& routes_;
  SenderTable& groups_;
  SenderAnswers& answers_;
  BranchMessages branch_messages_;
  Remover remover_;
  HostRate new_groups_;
  // All other INSTALLs, and REMOVEs. One of them may go by all equal-cost ways: a host must not
  // multiply its packets so at the rate of its link.
  HostRate repeats_;
  Instant started_ = wire::kNever;
  Instant due_ = wire::kNever;  // no group expires before that
  const SenderGroup* merged_ = nullptr;
};

}  // namespace cepheus::fabric
