#include "switch-emulator/engine/registration_messages.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace cepheus::fabric {
namespace {

constexpr std::size_t kInlineRoom = Frame::kCapacity - wire::kBthOffset;

// Emits on `port` what `write(room)` makes, which returns its size, or 0 if it needs more room;
// what of `datagram` concerns the next hop only is filled in here.
template <typename Write>
void send_written(Call& call, PortId port, wire::UdpDatagram datagram, Write&& write) {
  datagram.ethernet.source = call.config.mac;
  datagram.ethernet.destination = call.port(port).peer_mac;
  std::array<std::uint8_t, kInlineRoom> small;
  std::span<std::uint8_t> room = small;
  const auto write_signed = [&] {
    const std::size_t bare = write(room);
    const bool signs = bare != 0 && call.config.mrp_key;
    return signs ? call.config.mrp_key->sign(datagram.ip.source, room, bare) : bare;
  };
  std::size_t size = write_signed();
  if (size == 0) {
    room = call.scratch.take();
    size = write_signed();
  }
  assert(size > 0);
  Frame frame;
  datagram.emit(frame, room.first(size));
  call.emit(port, frame);
}

void send(Call& call, PortId port, const wire::UdpDatagram& datagram,
          const wire::MrpMessage& message) {
  send_written(call, port, datagram,
               [&](std::span<std::uint8_t> room) { return message.emit(room); });
}

void send_down(Call& call, const MrpRequest& request, const Path& path,
               const wire::MrpMessage& message) {
  wire::UdpDatagram datagram = request.datagram;
  if (path.is_host) {
    datagram.ip.destination = path.host;
  } else {
    if (datagram.ip.ttl <= 1) return call.count(Counter::kDropTtl);
    --datagram.ip.ttl;
  }
  send(call, path.port, datagram, message);
}

// From the switch to whoever sent `asked`.
wire::UdpDatagram answer_to(const Call& call, const wire::UdpDatagram& asked) {
  wire::UdpDatagram datagram;
  datagram.ip.source = call.config.address;
  datagram.ip.destination = asked.ip.source;
  datagram.udp.source_port = call.config.mrp_port;
  datagram.udp.destination_port = asked.udp.source_port;
  return datagram;
}

}  // namespace

void split_register(Call& call, const MrpRequest& request, const Group& group,
                    std::span<const PortId> ports) {
  const auto members = request.message.list();
  struct Place {
    PathNo path;
    std::uint8_t member;
  };
  std::array<Place, wire::MrpMessage::kMaxMembers> order;
  static_assert(wire::MrpMessage::kMaxMembers <= 0xFF);
  for (std::size_t m = 0; m < members.size(); ++m) {
    order[m] = {group.find(ports[m]), static_cast<std::uint8_t>(m)};
  }
  const std::span places = std::span(order).first(members.size());
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::pair(a.path, a.member) < std::pair(b.path, b.member);
  });
  wire::MrpMessage part;
  part.header = request.message.header;
  if (!call.rebases()) part.header.flags |= wire::MrpHeader::kHostSync;
  for (std::size_t i = 0; i < places.size();) {
    const PathNo path = places[i].path;
    part.member_count = 0;
    for (; i < places.size() && places[i].path == path; ++i) part.add(members[places[i].member]);
    if (path != group.leader) send_down(call, request, group.paths[path], part);
  }
}

void pass_on(Call& call, const MrpRequest& request, std::span<const Path> paths, PathNo leader,
             Reach reach) {
  wire::MrpMessage bare;
  bare.header = request.message.header;
  for (PathNo i = 0; i < paths.size(); ++i) {
    if (i == leader || (reach == Reach::kSwitches && paths[i].is_host)) continue;
    send_down(call, request, paths[i], bare);
  }
}

void pass_down(Call& call, const MrpRequest& request, const Group& group) {
  for (PathNo i = 0; i < group.paths.size(); ++i) {
    if (i == group.leader || group.paths[i].is_host) continue;
    send_down(call, request, group.paths[i], request.message);
  }
}

void pass_on_aged(Call& call, const Leader& leader, const Group& group, wire::MrpReject why) {
  wire::UdpDatagram datagram;
  datagram.ip.source = leader.host;
  datagram.ip.destination = group.id;
  datagram.udp.source_port = call.config.mrp_port;
  datagram.udp.destination_port = call.config.mrp_port;
  wire::MrpMessage message;
  message.header.type = wire::MrpType::kUnregister;
  message.header.flags = static_cast<std::uint16_t>(why);
  message.header.epoch = group.epoch;
  message.header.mcst_id = group.id;
  message.header.instance = leader.instance;
  pass_on(call, {datagram, message}, group.paths, group.leader, Reach::kAll);
}

void tell_evicted(Call& call, const MrpRequest& request, PortId port,
                  const wire::MrpMember& member) {
  wire::UdpDatagram datagram = request.datagram;
  datagram.ip.destination = member.host;
  wire::MrpMessage message;
  message.header = request.message.header;
  message.header.type = wire::MrpType::kUnregister;
  message.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kEvicted);
  send(call, port, datagram, message);
}

void confirm_eviction(Call& call, const MrpRequest& request, const wire::MrpMessage& evicted) {
  const wire::UdpDatagram datagram = answer_to(call, request.datagram);
  wire::MrpMessage message = evicted;
  message.header.type = wire::MrpType::kConfirm;
  message.header.flags = static_cast<std::uint16_t>(wire::MrpType::kEvict);
  send(call, call.ingress, datagram, message);
}

void send_report(Call& call, const Leader& leader, const Group& group,
                 const wire::MrpMessage& message) {
  if (group.leader == kNoPath) return;
  wire::UdpDatagram datagram;
  datagram.ip.source = call.config.address;
  datagram.ip.destination = leader.host;
  datagram.udp.source_port = call.config.mrp_port;
  datagram.udp.destination_port = call.config.mrp_port;
  send(call, group.paths[group.leader].port, datagram, message);
  call.count(Counter::kMrpReport);
}

void send_refusal(Call& call, const wire::UdpDatagram& asked, const wire::MrpRefusal& refusal) {
  send_written(call, call.ingress, answer_to(call, asked), [&](std::span<std::uint8_t> room) {
    std::copy(refusal.begin(), refusal.end(), room.begin());
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
  // Strangers may address a REJECT about the leader to the leader, who believes none of that kind.
  const bool names = !member.host.is_unset() && member.host != datagram.ip.destination;
  if (names) message.add(member);
  send(call, call.ingress, datagram, message);
  call.count(Counter::kMrpReject);
}

}  // namespace cepheus::fabric
