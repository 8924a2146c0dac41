// The next hop is read from the kernel at most once in kBelieved, or in kBetweenQuestions while it
// is unknown. Until then frames for the host are dropped and counted, and the kernel is made to
// resolve it. Closing drops the waiting frames. The bound MAC address is forgotten when the port
// opens again.
#include "switch-emulator/ports/one_armed_port.h"

#include "switch-emulator/ports/one_armed_interface.h"
#include "wire/roce.h"

namespace cepheus::fabric {

// Lifetime of a next hop: shorter than the replacement of a failed router takes (VRRP, RFC 5798:
// three advertisements of 1 s), and long enough to cost nothing with thousands of hosts.
constexpr wire::Duration kBelieved = std::chrono::seconds(1);

OneArmedPort::OneArmedPort(OneArmedInterface& interface, FlushList& flush_list,
                           const OneArmedHost& host)
    : AccessPort(flush_list), interface_(interface), host_(host) {}

wire::Result<void> OneArmedPort::open(wire::Instant now) {
  bound_.reset();
  if (auto found = look(now); !found) return found;
  open_ = true;
  return {};
}

void OneArmedPort::close() {
  wire::Frame frame;
  while (receive(frame)) {
    if (frame.ref != wire::kNoBuffer) interface_.pools().drop(frame.ref);
  }
  open_ = false;
}

// The fabric's packets do not refresh the kernel's neighbour entry: without a request it expires.
wire::Result<void> OneArmedPort::look(wire::Instant now) {
  auto hop = interface_.next_hops().find(host_.address);
  if (!hop) {
    hop_.mac.reset();
    next_look_ = now + kBetweenQuestions;
    return tl::unexpected(hop.error());
  }
  hop_ = *hop;
  next_look_ = now + (hop_.mac ? kBelieved : kBetweenQuestions);
  if (!hop_.is_fresh) interface_.next_hops().request_hop(hop_.address);
  return {};
}

bool OneArmedPort::is_bound_to(const wire::Mac& mac, wire::Instant now) {
  if (host_.any_mac) return true;
  if (host_.mac) return mac == *host_.mac;
  if (hop_.is_gateway) {
    if (now >= next_look_) static_cast<void>(look(now));
    return hop_.mac == mac;
  }
  if (!bound_) bound_ = mac;
  return mac == *bound_;
}

std::uint8_t OneArmedPort::fill() const { return interface_.fill(); }

bool OneArmedPort::has_space() const { return interface_.queues().has_space(queue_); }

void OneArmedPort::enqueue(const wire::Frame& frame) { interface_.queues().push(queue_, frame); }

bool OneArmedPort::must_wait() const {
  if (queue_.is_empty() || !interface_.is_backed_up()) return false;
  const wire::Frame& next = interface_.queues().front(queue_);
  if (next.icrc_state == wire::Icrc::kNone) return false;
  const auto opcode = static_cast<wire::Opcode>(next.bytes[wire::kBthOffset]);
  return wire::opcode_info(opcode).request();
}

bool OneArmedPort::receive(wire::Frame& frame) { return interface_.queues().pop(queue_, frame); }

bool OneArmedPort::deliver(const wire::Frame& frame, SenderNo, wire::Instant now) {
  const auto drop = [this](PortCounter reason) {
    count(reason);
    return false;
  };
  if (!open_) return drop(PortCounter::kDropNoClient);
  if (now >= next_look_) static_cast<void>(look(now));
  if (!hop_.mac) return drop(PortCounter::kDropNoNeighbour);
  if (const auto refused = interface_.send(frame, *hop_.mac)) return drop(*refused);
  mark_for_flush();
  return true;
}

// The first port sends for all.
void OneArmedPort::flush() {
  unmark();
  if (interface_.has_pushed()) count(PortCounter::kDropLinkDown, interface_.kick());
}

bool OneArmedPort::arm() { return queue_.is_empty(); }

}  // namespace cepheus::fabric
