// Handling of the packets of sender groups, MC-RDMA's multicast, in a switch (docs/protocol.md,
// "Sender groups"; MC-RDMA IV). Separate from groups with McstIDs: other keys, other tables, no
// turns.
#pragma once

#include <algorithm>

#include "switch-emulator/engine/mcrdma/installer.h"

namespace cepheus::fabric {

class SenderGroups {
 public:
  SenderGroups(const SwitchConfig& config, const Routes& routes)
      : routes_(routes),
        answers_(config, routes, table_),
        installer_(config, routes, table_, answers_) {}

  // Before each call into the switch.
  void on_call(Instant now) { installer_.on_call(now); }
  // A RoCE packet between hosts. False: it belongs to no sender group, or needs only forwarding
  // here.
  bool on_packet(Call& call, const Frame& frame, const wire::UdpHeaders& headers);

  bool on_datagram(Call& call, const Frame& frame, const wire::UdpHeaders& headers);
  bool on_passing(Call& call, const Frame& frame, const wire::UdpHeaders& headers) {
    return installer_.on_passing(call, frame, headers);
  }
  void on_routes_changed(Call& call) { installer_.on_routes_changed(call); }
  void on_port_down(Call& call, PortId down) { installer_.on_port_down(call, down); }
  void on_port_up(Instant now, PortId up) { installer_.on_port_up(now, up); }
  void on_settings() { installer_.on_settings(); }
  void on_timer(Call& call);
  Instant deadline() const { return std::min(installer_.deadline(), overdue_at_); }

  const SenderTable& table() const { return table_; }

 private:
  void note_deadline(const SenderGroup& group);
  bool drop_unrewritten(Call& call, Ipv4 destination) const;
  bool on_data(Call& call, SenderGroup& group, const Frame& frame,
               const wire::RoceHeaders& headers);
  void replicate(Call& call, SenderGroup& group, const Frame& frame,
                 const wire::RoceHeaders& headers);
  void take_feedback(Call& call, SenderGroup& group, const Frame& frame,
                     const wire::RoceHeaders& headers);
  void refuse(Call& call, SenderGroup& group, const wire::RoceHeaders& headers, Ipv4 on_behalf_of,
              wire::NakCode code);

  const Routes& routes_;
  SenderTable table_;
  SenderAnswers answers_;
  Installer installer_;
  Instant overdue_at_ = wire::kNever;  // no feedback is overdue before that
};

}  // namespace cepheus::fabric
