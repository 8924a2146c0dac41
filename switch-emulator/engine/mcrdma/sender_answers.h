// Messages to the senders of sender groups (docs/protocol.md, "Sender groups"): answers of receivers
// and of this switch, and its reports of receivers.
#pragma once

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/mcrdma/sender_table.h"
#include "switch-emulator/engine/routes.h"
#include "wire/roce.h"

namespace cepheus::fabric {

// The frame is from a host at this switch.
inline bool is_from_sender(const Call& call) {
  return call.ingress() != PortId() && call.port(call.ingress()).kind == net::PortKind::kHost;
}

class SenderAnswers {
 public:
  SenderAnswers(const SwitchConfig& config, const Routes& routes, SenderTable& groups)
      : config_(config), routes_(routes), groups_(groups) {}

  // The sender requests a REPORT of its lagging receivers.
  void on_query(Call& call, const wire::SenderGroupMessage& message);
  // From a receiver at this switch, to a sender anywhere.
  void on_answer(Call& call, const Frame& frame, const wire::UdpDatagram& datagram,
                 const wire::SenderGroupMessage& message);
  // No way leads to `receiver`.
  void report_cut_off(Call& call, const wire::SenderGroupMessage& message,
                      const wire::MrpMember& receiver, std::uint8_t tos);
  // The port of `host`, a receiver here, is down.
  void report_down(Call& call, const wire::SenderGroupMessage& installed, Ipv4 host,
                   std::uint8_t tos);
  // A copy for `receiver` did not fit through its port: the sender gets REJECT(too long), once in
  // kBetweenTooLong (refusals.h).
  void report_too_long(Call& call, SenderGroup& group, std::uint8_t receiver);
  void reject(Call& call, const wire::SenderGroupMessage& message, wire::MrpReject reason,
              const wire::MrpMember* about, std::uint8_t tos);
  // By the route to `destination`.
  void send_to(Call& call, Ipv4 destination, wire::UdpDatagram datagram,
               const wire::SenderGroupMessage& message);

 private:
  void send_to_sender(Call& call, wire::SenderGroupMessage& message, std::uint8_t tos);

  const SwitchConfig& config_;
  const Routes& routes_;
  SenderTable& groups_;
};

}  // namespace cepheus::fabric
