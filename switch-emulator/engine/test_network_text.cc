// The text of a frame in a test's inbox.
#include "switch-emulator/engine/test_network.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

std::string TestNetwork::text(const Frame& frame) const {
  if (const auto h = wire::RoceHeaders::parse(frame)) {
    const std::string psn = " " + std::to_string(distance(start_psn(), h->bth.psn));
    if (h->bth.opcode == wire::Opcode::kCnp) return "cnp";
    if (h->bth.opcode != wire::Opcode::kRcAcknowledge) return "data" + psn;
    const std::string value = std::to_string(h->aeth.value);
    if (h->aeth.kind == wire::AckKind::kAck) return "ack" + psn;
    if (h->aeth.kind == wire::AckKind::kRnrNak) return "rnr" + psn + " t" + value;
    return h->aeth.is_sequence_nak() ? "nak" + psn : "fatal" + psn + " c" + value;
  }
  const auto datagram = wire::UdpDatagram::parse(frame);
  const auto payload = datagram && key() != nullptr
                           ? key()->verify(datagram->ip.source, frame.payload())
                           : std::optional(frame.payload());
  const auto message = payload ? wire::MrpMessage::parse(*payload) : std::nullopt;
  if (!datagram || !message) return "other";
  std::string t = std::string(wire::to_string(message->header.type)) + " e" +
                  std::to_string(message->header.epoch);
  if (message->header.type == wire::MrpType::kReject) {
    t += std::string(" ") + wire::to_string(static_cast<wire::MrpReject>(message->header.flags));
  }
  for (const auto& m : message->list()) t += " " + m.host.to_string();
  return t;
}

std::unique_ptr<TestNetwork> make_star(std::size_t hosts, bool ready,
                                       const std::function<void(SwitchConfig&)>& change) {
  auto net = std::make_unique<TestNetwork>();
  net->add_switch();
  for (std::size_t h = 0; h < hosts; ++h) net->add_host(0);
  if (change) change(net->config(0));
  net->start();
  if (ready) net->set_up_group();
  return net;
}

std::unique_ptr<TestNetwork> make_star_amid(std::size_t hosts, std::int64_t last,
                                            const std::function<void(SwitchConfig&)>& change) {
  auto net = make_star(hosts, true, change);
  net->message(0, 0, last);
  net->clear();
  return net;
}

std::unique_ptr<TestNetwork> make_pair_of_switches(
    bool ready, const std::function<void(SwitchConfig&)>& change) {
  auto net = std::make_unique<TestNetwork>();
  for (int s = 0; s < 2; ++s) net->add_switch();
  net->link(0, 1);
  for (int h = 0; h < 4; ++h) net->add_host(h / 2);
  for (int s = 0; s < 2; ++s) {
    if (change) change(net->config(s));
  }
  net->start();
  if (ready) net->set_up_group();
  return net;
}

}  // namespace cepheus::fabric
