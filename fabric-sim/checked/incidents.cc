#include "fabric-sim/checked/incidents.h"

#include <algorithm>
#include <array>

#include "wire/icrc.h"
#include "wire/roce.h"
#include "wire/udp.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kOwnStream = 0xD1CE'0F'FA7E;  // the rest of the seed's plan stays as it is
constexpr std::uint32_t kForgedFrames = 120;

bool is_member(const GroupPlan& group, std::size_t host) {
  return std::any_of(group.members.begin(), group.members.end(),
                     [&](const MemberPlan& m) { return m.host == host; });
}

std::optional<std::size_t> outsider(const ScenarioPlan& plan) {
  for (std::size_t host = 0; host < plan.topology.hosts.size(); ++host) {
    const auto holds = [&](const GroupPlan& group) { return is_member(group, host); };
    if (std::none_of(plan.groups.begin(), plan.groups.end(), holds)) return host;
  }
  return std::nullopt;
}

}  // namespace

void add_incident(ScenarioPlan& plan) {
  Random random(plan.seed ^ kOwnStream);
  IncidentPlan& incident = plan.incident;
  constexpr std::array kKinds{IncidentKind::kDeath,         IncidentKind::kDeath,
                              IncidentKind::kHostRestart,   IncidentKind::kStall,
                              IncidentKind::kSwitchRestart, IncidentKind::kForgery};
  incident.kind = kKinds[random.below(kKinds.size())];
  incident.at = random.between(wire::Duration{50us}, wire::Duration{6ms});
  incident.host = static_cast<std::size_t>(random.below(plan.topology.hosts.size()));
  incident.at_switch = static_cast<std::size_t>(random.below(plan.topology.switches.size()));
  incident.noticed = random.chance(0.7);
  incident.lasts = random.between(wire::Duration{500us}, wire::Duration{8ms});
  if (incident.kind == IncidentKind::kForgery) {
    const auto host = outsider(plan);
    if (host) {
      incident.host = *host;
      incident.at = random.between(wire::Duration{0}, wire::Duration{1ms});
    } else {
      incident.kind = IncidentKind::kStall;
    }
  }
  const bool dies =
      incident.kind == IncidentKind::kDeath || incident.kind == IncidentKind::kHostRestart;
  // Senders must outlast the time after which a silent member is given up.
  // Nobody reports a sender group's receiver to it: its switch may have no part in the group.
  const bool is_reported = incident.noticed && !plan.groups.front().has_one_sender;
  if (dies && !is_reported) {
    plan.transport.timeout_code = std::max<std::uint8_t>(plan.transport.timeout_code, 8);
  }
  // A cable that was unplugged has nothing on its way when it is plugged in again: what its host
  // said before may not be taken for something that it says since.
  if (incident.kind == IncidentKind::kHostRestart && incident.noticed) {
    incident.lasts = std::max(incident.lasts, plan.faults.reorder_by);
  }
  for (net::SwitchSpec& spec : plan.topology.switches) spec.config.orphan_age = 10ms;
}

Incidents::Incidents(Simulator& simulator, Network& network, const ScenarioPlan& plan)
    : simulator_(simulator),
      network_(network),
      plan_(plan),
      incident_(plan.incident),
      random_(plan.seed * 3 + kOwnStream) {}

void Incidents::start() {
  if (incident_.kind == IncidentKind::kNone) return;
  const bool forges = incident_.kind == IncidentKind::kForgery;
  simulator_.schedule(Instant{incident_.at}, *this, forges ? kForge : kStrike);
}

void Incidents::on_event(Instant now, std::uint64_t what) {
  switch (static_cast<What>(what)) {
    case kStrike:
      return strike(now);
    case kNotice:
      return network_.set_host_port(now, incident_.host, false);
    case kReturn:
      network_.host(incident_.host).revive();
      return network_.set_host_port(now, incident_.host, true);
    case kForge:
      return forge(now);
  }
}

void Incidents::strike(Instant now) {
  switch (incident_.kind) {
    case IncidentKind::kDeath:
    case IncidentKind::kHostRestart:
      simulator_.trace().note(now, network_.host(incident_.host).name(), "dies");
      kill_host();
      if (incident_.noticed) simulator_.schedule(now + 20us, *this, kNotice);
      if (incident_.kind == IncidentKind::kHostRestart) {
        simulator_.schedule(now + 20us + incident_.lasts, *this, kReturn);
      }
      break;
    case IncidentKind::kStall:
      simulator_.trace().note(now, network_.host(incident_.host).name(), "is stopped");
      network_.host(incident_.host).sleep_until(now + incident_.lasts);
      break;
    case IncidentKind::kSwitchRestart:
      simulator_.trace().note(now, network_.switches()[incident_.at_switch]->name(), "restarts");
      restart_switch();
      break;
    case IncidentKind::kNone:
    case IncidentKind::kForgery:
      break;
  }
}

void Incidents::kill_host() {
  for (const Victim& group : groups_) {
    const GroupPlan& plan = group.ledger.plan();
    for (std::size_t i = 0; i < plan.members.size(); ++i) {
      if (plan.members[i].host != incident_.host) continue;
      // All or nothing until all are active; and nobody leads on.
      if (!group.leader.is_active() || i == plan.leader) group.ledger.on_disaster();
      group.ledger.on_death(i);
      // With its only receiver a sender group ends.
      if (plan.has_one_sender && plan.members.size() == 2) group.ledger.on_disaster();
      group.members[i]->die();
      if (i == plan.leader) group.leader.die();
      for (const auto& member : group.members) member->on_death_of_another();
    }
  }
  network_.host(incident_.host).die();
}

// A group that is just being set up may go over any switch.
void Incidents::restart_switch() {
  SwitchNode& node = *network_.switches()[incident_.at_switch];
  for (const Victim& group : groups_) {
    const GroupPlan& plan = group.ledger.plan();
    const bool has_begun = Instant{plan.starts} <= simulator_.now();
    const bool is_held = !node.engine().groups(plan.id).empty();
    if (has_begun && (is_held || !group.leader.is_active())) group.ledger.on_disaster();
  }
  node.restart(simulator_.now());
}

void Incidents::forge(Instant now) {
  const GroupPlan& target = plan_.groups[random_.below(plan_.groups.size())];
  network_.host(incident_.host)
      .send_frame(random_.chance(0.5) ? forged_datagram(target) : forged_roce(target));
  if (++forged_ == kForgedFrames) return;
  simulator_.schedule(now + random_.between(wire::Duration{10us}, wire::Duration{80us}), *this,
                      kForge);
}

// Registration in somebody else's name, or in its own about others.
wire::Frame Incidents::forged_datagram(const GroupPlan& target) {
  const auto address = [&](std::size_t host) { return plan_.topology.hosts[host].address; };
  const Host& forger = network_.host(incident_.host);
  const MemberPlan& somebody = target.members[random_.below(target.members.size())];
  const wire::Ipv4 leader = address(target.members[target.leader].host);
  wire::MrpMessage message;
  message.header.type = static_cast<wire::MrpType>(random_.between(1, 13));
  message.header.flags = static_cast<std::uint16_t>(random_.below(10));
  message.header.epoch = random_.chance(0.8) ? target.epoch : std::uint16_t(target.epoch + 1);
  message.header.mcst_id = target.id;
  message.header.instance = 1;
  message.add({address(somebody.host), rnic::Qpn(1 + random_.below(20)),
               static_cast<std::uint8_t>(random_.below(8))});
  wire::UdpDatagram datagram;
  datagram.ethernet.destination = forger.gateway();
  // Whoever registers an identifier first has it: that needs a leader of its own, not a forger.
  const bool in_leaders_name = message.header.type == wire::MrpType::kRegister;
  datagram.ip.source = in_leaders_name       ? leader
                       : random_.chance(0.3) ? forger.address()
                       : random_.chance(0.5) ? leader
                                             : address(somebody.host);
  datagram.ip.destination = target.id;
  datagram.udp.source_port = 50000;
  datagram.udp.destination_port = plan_.topology.mrp_port;
  if (random_.chance(0.2)) {  // to the process itself, as its switch would, or nearly so
    const bool is_answer = wire::is_for_leader(message.header.type);
    datagram.ip.destination = is_answer ? leader : address(somebody.host);
    datagram.udp.destination_port = target.control_port();
    if (random_.chance(0.7)) datagram.udp.source_port = plan_.topology.mrp_port;
  }
  std::array<std::uint8_t, wire::MrpHeader::kSize + wire::MrpMember::kSize> bytes;
  wire::Frame frame;
  datagram.emit(frame, std::span(bytes).first(message.emit(bytes)));
  return frame;
}

// Data and feedback of a group that the forger does not belong to, near its window and far from it.
wire::Frame Incidents::forged_roce(const GroupPlan& target) {
  const auto address = [&](std::size_t host) { return plan_.topology.hosts[host].address; };
  const Host& forger = network_.host(incident_.host);
  const MemberPlan& somebody = target.members[random_.below(target.members.size())];
  wire::RoceHeaders h;
  h.ethernet.destination = forger.gateway();
  h.ip.source = random_.chance(0.5) ? forger.address() : address(somebody.host);
  h.ip.destination = random_.chance(0.7) ? target.id : address(somebody.host);
  h.udp.source_port = 0xC000;
  constexpr std::array kOpcodes{wire::Opcode::kRcAcknowledge, wire::Opcode::kRcAcknowledge,
                                wire::Opcode::kRcSendOnly, wire::Opcode::kCnp};
  h.bth.opcode = kOpcodes[random_.below(kOpcodes.size())];
  h.bth.destination_qp = random_.chance(0.8) ? wire::kVirtualQpn : rnic::Qpn(random_.below(32));
  h.bth.psn = wire::group_start_psn(target.id, target.epoch) + random_.below(40) -
              (random_.chance(0.2) ? 0x400000 : 8);
  constexpr std::array kKinds{wire::AckKind::kAck, wire::AckKind::kNak, wire::AckKind::kRnrNak};
  h.aeth.kind = kKinds[random_.below(kKinds.size())];
  h.aeth.value = static_cast<std::uint8_t>(random_.below(5));
  wire::Frame frame;
  h.emit(frame, 0);
  wire::seal_icrc(frame);
  return frame;
}

}  // namespace cepheus::sim
