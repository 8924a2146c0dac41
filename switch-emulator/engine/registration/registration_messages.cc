#include "switch-emulator/engine/registration/registration_messages.h"

#include <algorithm>
#include <utility>

#include "switch-emulator/engine/registration/signed_datagram.h"

namespace cepheus::fabric {
namespace {

void send_to_switch(Call& call, const MrpRequest& request, PortId port,
                    const wire::MrpMessage& message) {
  wire::UdpDatagram datagram = request.datagram;
  if (datagram.ip.ttl <= 1) return call.lose(Counter::kMrpSent, Counter::kDropCopyTtl);
  --datagram.ip.ttl;
  send_signed(call, port, datagram, message);
}

void send_to_member(Call& call, const MrpRequest& request, PortId port, std::uint16_t control_port,
                    const wire::MrpMessage& message) {
  wire::UdpDatagram datagram = request.datagram;
  datagram.ip.destination = call.port(port).host;
  address_process(call, control_port, datagram.udp);
  send_signed(call, port, datagram, message);
}

bool is_host(const Call& call, PortId port) { return call.port(port).kind == PortKind::kHost; }

// CONNECT and ACTIVATE contain the number of members behind the port that they are sent by, and of
// a reduction group the tree of all others.
void describe_sides(const Call& call, const Roster& roster, const Mft* mft, PortId port,
                    wire::MrpMessage& message) {
  wire::MrpHeader& header = message.header;
  if (header.type != wire::MrpType::kConnect && header.type != wire::MrpType::kActivate) return;
  const std::size_t count = is_host(call, port) ? 1 : roster.count_behind(port);
  header.flags = static_cast<std::uint16_t>(count);
  message.tree.reset();
  if (mft != nullptr) message.tree = mft->behaviour->tree_for(call, mft->find(port));
}

// From the switch by `port`, towards the leader.
wire::UdpDatagram to_leader(const Call& call, PortId port, McstId id, const Leader& leader) {
  wire::UdpDatagram datagram;
  datagram.ip.tos = leader.tos;
  datagram.ip.source = call.config.address;
  datagram.ip.destination = is_host(call, port) ? leader.host : id;
  address_process(call, is_host(call, port) ? leader.control_port : 0, datagram.udp);
  return datagram;
}

// ... to the sender of `request`.
wire::UdpDatagram answer_to(const Call& call, const wire::UdpDatagram& request) {
  return to_leader(
      call, call.ingress(), request.ip.destination,
      {request.ip.source, 0, request.udp.source_port, wire::without_ecn(request.ip.tos)});
}

}  // namespace

wire::MrpMessage without_members(const wire::MrpMessage& message) {
  wire::MrpMessage bare;
  bare.header = message.header;
  bare.path = message.path;
  bare.skipped = message.skipped;
  bare.skipped_size = message.skipped_size;
  return bare;
}

void Split::add(PortId port, const wire::MrpMember& member) { places_.push_back({port, &member}); }

void Split::send(Call& call, const MrpRequest& request, const Roster* roster, std::uint16_t flags,
                 const Mft* mft) {
  std::ranges::sort(places_, {}, [](const Place& at) { return std::pair(at.port, at.member); });
  const wire::MrpType type = request.message.header.type;
  const bool names_itself = type == wire::MrpType::kRegister || type == wire::MrpType::kGiveUp;
  wire::MrpMessage part = request.message;  // with the records that are unknown here
  for (std::size_t i = 0; i < places_.size();) {
    const PortId port = places_[i].port;
    const std::uint16_t control_port = places_[i].member->control_port;
    part.member_count = 0;
    if (type == wire::MrpType::kRegister) {
      const std::uint16_t sent = request.message.header.flags & ~wire::MrpHeader::kHostSync;
      part.header.flags = is_host(call, port) ? sent | flags : sent;
    }
    if (roster != nullptr) describe_sides(call, *roster, mft, port, part);
    for (; i < places_.size() && places_[i].port == port; ++i) part.add(*places_[i].member);
    if (is_host(call, port)) {
      if (!names_itself) part.member_count = 0;
      send_to_member(call, request, port, control_port, part);
    } else {
      send_to_switch(call, request, port, part);
    }
  }
}

void pass_on(Call& call, const MrpRequest& request, std::span<const PortId> ports,
             const Roster& roster, const Mft* mft) {
  wire::MrpMessage bare = without_members(request.message);
  for (const PortId port : ports) {
    describe_sides(call, roster, mft, port, bare);
    if (!is_host(call, port)) {
      send_to_switch(call, request, port, bare);
    } else if (const Roster::Member* member = roster.find(call.port(port).host)) {
      send_to_member(call, request, port, member->control_port, bare);
    }
  }
}

void pass_on_to_switches(Call& call, const MrpRequest& request, std::span<const PortId> ports) {
  const wire::MrpMessage bare = without_members(request.message);
  for (const PortId port : ports) {
    if (!is_host(call, port)) send_to_switch(call, request, port, bare);
  }
}

void pass_down(Call& call, const MrpRequest& request, std::span<const PortId> ports) {
  for (const PortId port : ports) {
    if (!is_host(call, port)) send_to_switch(call, request, port, request.message);
  }
}

namespace {

// Passes UNREGISTER in the leader's name to `pass`.
template <typename Pass>
void make_aged(const Call& call, const AgedGroup& group, Pass&& pass) {
  wire::UdpDatagram datagram;
  datagram.ip.tos = group.leader.tos;
  datagram.ip.source = group.leader.host;
  datagram.ip.destination = group.id;
  datagram.udp.source_port = call.config.mrp_port;
  datagram.udp.destination_port = call.config.mrp_port;
  auto message = message_of(wire::MrpType::kUnregister, group.id, group.epoch, group.leader);
  message.header.flags = static_cast<std::uint16_t>(group.why);
  pass(MrpRequest{datagram, message});
}

}  // namespace

void pass_on_aged(Call& call, const AgedGroup& group, std::span<const PortId> ports,
                  const Roster& roster) {
  make_aged(call, group, [&](const MrpRequest& m) { pass_on(call, m, ports, roster); });
}

void pass_on_aged_again(Call& call, const AgedGroup& group, std::span<const PortId> ports) {
  make_aged(call, group, [&](const MrpRequest& m) { pass_on_to_switches(call, m, ports); });
}

void pass_up(Call& call, const MrpRequest& answer, PortId port, const Leader& leader) {
  if (!is_host(call, port)) return send_to_switch(call, answer, port, answer.message);
  wire::UdpDatagram datagram = answer.datagram;
  datagram.ip.destination = leader.host;
  address_process(call, leader.control_port, datagram.udp);
  send_signed(call, port, datagram, answer.message);
}

void send_evicted(Call& call, const MrpRequest& request, PortId port,
                  const wire::MrpMember& member) {
  wire::MrpMessage message;
  message.header = request.message.header;
  message.header.type = wire::MrpType::kUnregister;
  message.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kEvicted);
  send_to_member(call, request, port, member.control_port, message);
}

void confirm_eviction(Call& call, const MrpRequest& request, const wire::MrpMessage& evicted) {
  wire::MrpMessage message = evicted;
  message.header.type = wire::MrpType::kConfirm;
  message.header.flags = static_cast<std::uint16_t>(wire::MrpType::kEvict);
  send_signed(call, call.ingress(), answer_to(call, request.datagram), message);
}

void confirm_publication(Call& call, const wire::UdpDatagram& request,
                         const wire::Publication& publication) {
  wire::MrpMessage message;
  message.header = publication.header;
  message.header.type = wire::MrpType::kConfirm;
  message.header.flags = static_cast<std::uint16_t>(wire::MrpType::kPublish);
  message.add({publication.member.host, publication.member.qpn});
  send_signed(call, call.ingress(), answer_to(call, request), message);
}

wire::MrpMessage message_of(wire::MrpType type, McstId id, std::uint16_t epoch,
                            const Leader& leader) {
  wire::MrpMessage message;
  message.header.type = type;
  message.header.epoch = epoch;
  message.header.mcst_id = id;
  message.header.instance = leader.instance;
  return message;
}

void send_to_leader(Call& call, PortId port, const Leader& leader,
                    const wire::MrpMessage& message) {
  send_signed(call, port, to_leader(call, port, message.header.mcst_id, leader), message);
}

void send_report(Call& call, const Leader& leader, const Mft& mft,
                 const wire::MrpMessage& message) {
  if (mft.leader == kNoPath) return;
  send_to_leader(call, mft.paths[mft.leader].port, leader, message);
  call.count(Counter::kMrpReport);
}

void send_refusal(Call& call, const wire::UdpDatagram& request, const wire::MrpRefusal& refusal) {
  write_signed(call, call.ingress(), answer_to(call, request), [&](std::span<std::uint8_t> buffer) {
    std::copy(refusal.begin(), refusal.end(), buffer.begin());
    return refusal.size();
  });
  call.count(Counter::kMrpReject);
}

void send_reject(Call& call, const MrpRequest& request, wire::MrpReject reason,
                 const wire::MrpMember& member) {
  const wire::UdpDatagram datagram = answer_to(call, request.datagram);
  wire::MrpMessage message;
  message.header = request.message.header;
  message.header.type = wire::MrpType::kReject;
  message.header.flags = static_cast<std::uint16_t>(reason);
  // A stranger may send a REJECT about the leader to the leader, which believes none of that kind.
  const bool names = !member.host.is_unset() && member.host != datagram.ip.destination;
  if (names) message.add(member);
  send_signed(call, call.ingress(), datagram, message);
  call.count(Counter::kMrpReject);
}

}  // namespace cepheus::fabric
