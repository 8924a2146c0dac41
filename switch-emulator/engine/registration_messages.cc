#include "switch-emulator/engine/registration_messages.h"

namespace cepheus::fabric {
namespace {

constexpr std::size_t kInlineRoom = Frame::kCapacity - wire::kBthOffset;

// Emits `message` on `port`; what of `datagram` concerns the next hop only is filled in here.
void send(Call& call, PortId port, wire::UdpDatagram datagram, const wire::MrpMessage& message) {
  datagram.ethernet.source = call.config.mac;
  datagram.ethernet.destination = call.port(port).peer_mac;
  std::array<std::uint8_t, kInlineRoom> small;
  std::span<std::uint8_t> room = small;
  const auto write = [&] {
    const std::size_t bare = message.emit(room);
    const bool signs = bare != 0 && call.config.mrp_key;
    return signs ? call.config.mrp_key->sign(datagram.ip.source, room, bare) : bare;
  };
  std::size_t size = write();
  if (size == 0) {
    room = call.scratch.take();
    size = write();
  }
  Frame frame;
  datagram.emit(frame, room.first(size));
  call.emit(port, frame);
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

}  // namespace

void split_register(Call& call, const MrpRequest& request, const Group& group,
                    std::span<const PortId> ports) {
  const auto members = request.message.list();
  wire::MrpMessage part;
  part.header = request.message.header;
  if (!call.rebases()) part.header.flags |= wire::MrpHeader::kHostSync;
  for (PathNo i = 0; i < group.paths.size(); ++i) {
    if (i == group.leader) continue;
    const Path& path = group.paths[i];
    part.member_count = 0;
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (ports[m] == path.port) part.add(members[m]);
    }
    if (part.member_count > 0) send_down(call, request, path, part);
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
  wire::UdpDatagram datagram;
  datagram.ip.source = call.config.address;
  datagram.ip.destination = request.datagram.ip.source;
  datagram.udp.source_port = call.config.mrp_port;
  datagram.udp.destination_port = request.datagram.udp.source_port;
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

void send_reject(Call& call, const MrpRequest& request, wire::MrpReject reason,
                 const wire::MrpMember& member) {
  wire::UdpDatagram datagram;
  datagram.ip.source = call.config.address;
  datagram.ip.destination = request.datagram.ip.source;
  datagram.udp.source_port = call.config.mrp_port;
  datagram.udp.destination_port = request.datagram.udp.source_port;
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
